module.exports = { AbortController, AbortSignal };
