import { models, play, report } from "./page.js";

report(play(models()));
