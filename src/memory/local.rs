//! `Local`: hands single-threaded values to bashkit, whose traits ask for
//! `Send + Sync`.

use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A value that never leaves the one thread of a wasm32 instance.
pub(crate) struct Local<T>(T);

// SAFETY: this module exists on wasm32 only, and the core is built without the
// `atomics` feature: an instance has exactly one thread.
unsafe impl<T> Send for Local<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Local<T> {}

#[cfg(target_feature = "atomics")]
compile_error!("Local is sound only on a single-threaded wasm32");

impl<T> Local<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(value)
    }
}

impl<T> Deref for Local<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<F: Future + Unpin> Future for Local<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}
