// What went wrong, in one sentence for the person at this page, with the way
// out. The core's own sentences are for programs and name options of theirs.

/**
 * @param {{code: string, message: string}} error an event's
 * @param {boolean} online whether the browser sees a network
 */
export function explain({ code, message }, online) {
  if (code === "network" && !online) return "There is no network; connect and send the message again.";
  const origin = message.match(/cannot connect to (https?:\/\/[^\s:]+(?::\d+)?)/)?.[1];
  if (code === "network" && origin) {
    return `No connection to ${origin}: if the network is fine, that server does not allow requests from web pages (CORS), and a proxy of yours, which does and passes them on, helps; its address goes into the settings.`;
  }
  return sentence(message);
}

/** The core's messages start in lower case and have no full stop. @param {string} message */
export function sentence(message) {
  const text = message.charAt(0).toUpperCase() + message.slice(1);
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}
