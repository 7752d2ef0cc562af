// The worker's script: the package as it is, called from the page.

import * as api from "../index.js";
import { serve } from "./serve.js";

serve(api, globalThis, (receive) => {
  globalThis.onmessage = ({ data }) => receive(data);
});
