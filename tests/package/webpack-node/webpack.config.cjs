module.exports = { mode: "production", target: "node", entry: "./bundled.mjs", performance: { hints: false } };
