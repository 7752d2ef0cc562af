// The package reads its core and starts its worker from beside its own files.

/** @type {import("next").NextConfig} */
export default { serverExternalPackages: ["hermitcrab", "hermitcrab-python"] };
