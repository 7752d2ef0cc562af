import { models, play, report } from "./page.js";
import { lent } from "./programs.js";

report(play(models()).then(async (result) => ({ ...result, lent: await lent() })));
