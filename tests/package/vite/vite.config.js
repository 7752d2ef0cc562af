// The development server pre-bundles dependencies, which would lose the files
// beside them.
export default { optimizeDeps: { exclude: ["hermitcrab"] } };
