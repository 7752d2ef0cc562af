// Shows the user what goes wrong in an action.

import { sentence } from "./explain.js";
import { toast } from "./toast.js";

/** @param {Error} error */
export function tell(error) {
  toast(sentence(error.message), "error");
}

/** `act`, with what it throws told. @template {any[]} T @param {(...values: T) => any} act */
export function guard(act) {
  return async (...values) => {
    try {
      return await act(...values);
    } catch (error) {
      tell(error);
    }
  };
}
