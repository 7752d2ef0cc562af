from .cart import Cart, restore

__all__ = ["Cart", "restore"]
