// What the playground's people read when something goes wrong.

import assert from "node:assert/strict";
import { test } from "node:test";
import { mayAsk, speakable, whyNot } from "../../www/src/page/address.js";
import { again, explain, sentence } from "../../www/src/page/explain.js";

const door = (origin) => `cannot connect to ${origin}: Failed to fetch; check the network; if the server does not allow requests from web pages (CORS), set baseUrl to a proxy of yours that does`;

function check(name, actual, expected) {
  test(name, () => assert.deepEqual(actual(), expected));
}

check("a server that does not answer is named with its port", () => explain({ code: "network", message: door("http://localhost:9999") }, true).slice(0, 40), "No connection to http://localhost:9999: ");
check("an address in brackets is named as a whole", () => explain({ code: "network", message: door("http://[::1]:9999") }, true), whyNot("http://[::1]:9999"));
check("a server that the policy keeps away is no matter of CORS", () => explain({ code: "network", message: door("http://192.0.2.1:11434") }, false), whyNot("http://192.0.2.1:11434"));
check("without a network the server is not to blame", () => explain({ code: "network", message: door("https://api.test") }, false), "There is no network; connect and send the message again.");

// What a page is told of all three is the same: what answers a request that nobody reads tells them apart.
const about = (answers) => explain({ code: "network", message: door("https://api.test") }, true, answers);
check("a server that is there and lets no page read it", () => about(true), "https://api.test is there, but it does not let web pages read its answers (CORS). Either it never does, and a proxy of yours that passes requests on and allows this page helps: its address goes into the settings. Or it does only for requests that it accepts: then check the key and the address there first.");
check("a server that is not there", () => about(false), "Nothing answers at https://api.test. Check the address in the settings, that the server runs, and that nothing in between (a firewall, an extension) blocks it; then try again.");
check("a wrong key", () => explain({ code: "authentication", status: 401, message: "anthropic refused the credential `anthropic` (invalid x-api-key); check its key" }, true), "The server answered, and it refused the key (401: invalid x-api-key). Check the key in the settings: that it is whole, and this provider's.");
check("no key at all", () => explain({ code: "authentication", status: 401, message: "openai wants a key (no bearer token); give the host one and name it" }, true), "The server answered, and it wants a key (401: no bearer token). Paste one in the settings.");
check("another attempt at a server that lets no page read it says so at once", () => again({ message: door("http://localhost:9"), attempt: 2, delay_ms: 400 }, true), "http://localhost:9 is there, but it does not let web pages read its answers (CORS). Attempt 2 follows.");

const reachable = (address) => mayAsk(address, "http://play.test:8000");
check("a page may ask https, this computer and its own host", () => ["https://api.test/v1", "http://localhost:1", "http://127.0.0.1/v1", "http://play.test:8000/proxy"].map(reachable), [true, true, true, true]);
check("a page may not ask others over http", () => ["http://192.0.2.1:11434", "http://ollama.lan", "http://[::1]:9", "http://127.0.0.2", "http://play.test"].map(reachable), [false, false, false, false, false]);
check("this computer's IPv6 address goes by its name", () => ["http://[::1]:9999/v1", "http://[::1]", "https://[::1]:9", "http://[::12]"].map(speakable), ["http://localhost:9999/v1", "http://localhost", "https://[::1]:9", "http://[::12]"]);
check("what may not be asked comes with the way out", () => whyNot("http://192.0.2.1:11434/v1"), "This page may ask https:// addresses and this computer (localhost, 127.0.0.1) only, and not http://192.0.2.1:11434: over plain http a key could be read on the way. Give that server an https:// address, forward a port of this computer to it (ssh -N -L 11434:localhost:11434 192.0.2.1) and use http://localhost:11434, or add it to POLICY in www/vite.config.js of a playground of your own.");

check("another attempt at no answer is short", () => again({ message: door("http://localhost:9"), attempt: 2, delay_ms: 400 }), "No connection to http://localhost:9 yet. Attempt 2 follows.");
check("a wait is reported", () => again({ message: "Anthropic limits the rate (429)", attempt: 2, delay_ms: 30_000 }), "Anthropic limits the rate (429). Attempt 2 follows in 30 s.");
check("a long wait is reported in minutes", () => again({ message: "no", attempt: 3, delay_ms: 300_000 }), "No. Attempt 3 follows in 5 min.");

// Words of the package's own options.
check("a zip bomb", () => sentence("the archive unpacks to more than 200 times its 9 bytes, as a zip bomb does; raise maxRatio if it is none"), "The archive unpacks to more than 200 times its 9 bytes, as a zip bomb does; if it is none, unpack it outside and import the folder.");
check("an empty archive", () => sentence("cannot unpack a.zip: importArchive: archive is empty"), "Cannot unpack a.zip: the archive is empty.");
check("a proxy", () => sentence(door("https://api.test")), "Cannot connect to https://api.test: Failed to fetch; check the network; if the server does not allow requests from web pages (CORS), put the address of a proxy of yours that does into the settings.");
check("a project that is open elsewhere", () => sentence("project a is open in another tab or process; close it there, open it with readOnly, or take it over"), "Project a is open in another tab or process; close it there, or take it over.");
