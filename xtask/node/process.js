// The program's `process`, for the packages.

module.exports = {
  nextTick: (...task) => globalThis.process.nextTick(...task),
  emitWarning: (...warning) => globalThis.process.emitWarning(...warning),
  get stdout() {
    return globalThis.process.stdout;
  },
  get stderr() {
    return globalThis.process.stderr;
  },
  env: {},
};
