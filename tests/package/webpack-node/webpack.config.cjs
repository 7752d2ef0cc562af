module.exports = { mode: "production", target: "node", entry: "./main.mjs", performance: { hints: false } };
