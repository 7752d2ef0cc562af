// `await using`: what objects end with at the end of a block.

/**
 * What a class has its end under; compilers of `await using` look there where
 * the engine has no such symbol.
 * @type {typeof Symbol.asyncDispose}
 */
export const asyncDispose = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");
