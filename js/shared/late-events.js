// Events of a call whose answer comes later: the caller has the iterator at once.

/**
 * The events of an iterator that comes later.
 * @param {Promise<AsyncIterableIterator<object>>} iterator
 * @returns {AsyncIterableIterator<object>}
 */
export function late(iterator) {
  // Listeners that ask for an event get it; others need not.
  iterator.catch(() => {});
  return {
    next: async () => (await iterator).next(),
    return: async () => (await iterator).return(),
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
