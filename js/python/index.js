// Where CPython is: `pythonProgram` of `hermitcrab/python` looks here.

// Bundlers recognise this form and ship the file.
export const url = new URL("./python.tar.gz", import.meta.url);
