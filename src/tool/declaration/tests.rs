//! Declarations that make no sense, and how executors' messages name things.
