// Events of a call whose answer comes later: the caller has the iterator at once.

/**
 * The events of an iterator that comes later.
 * @param {Promise<AsyncIterableIterator<object>>} iterator
 * @returns {AsyncIterableIterator<object>}
 */
export function late(iterator) {
  // Whoever asks for an event is told; whoever does not, need not be.
  iterator.catch(() => {});
  return {
    next: async () => (await iterator).next(),
    return: async () => (await iterator).return(),
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
