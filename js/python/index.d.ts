// Where CPython is: `pythonProgram` of `hermitcrab/python` looks here.

export declare const url: { readonly href: string };
