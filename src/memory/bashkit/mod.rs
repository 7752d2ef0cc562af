//! What bashkit 0.20.2 does otherwise than the sandbox needs, one file for each.
//!
//! Every file says what users would see without it. When bashkit does it right, a test
//! in `tests/it/bashkit.rs` of the file's name fails, and the file can go. Where plain
//! bashkit cannot be asked natively, no test fails by itself: the column says what shows
//! the difference without the file, or why nothing can.
//!
//! | file | what bashkit does | shown by |
//! |---|---|---|
//! | `absent` | `git`, `curl` and their like mislead | `absent` |
//! | `arguments` | gathers the refusals of a builtin's arguments | its parts |
//! | `awk` | gives commands the text that stands for bytes | `bytes` |
//! | `braces` | leaves words of large braces out | `braces` |
//! | `bytes` | puts U+FFFD for bytes that are not UTF-8 | `bytes` |
//! | `checked` | looks at nothing of this before it runs a builtin | its parts |
//! | `costs` | counts nothing that all builtins have in common | its interface |
//! | `cut` | takes a list that it cannot read for none | `cut` |
//! | `descriptors` | takes a quoted `{name}` in front of a redirect for a descriptor | `descriptors` |
//! | `devices` | reads endless devices whole, as all files | our own tree |
//! | `diff` | takes no notice of the ends of lines | `diff` |
//! | `expansions` | leaves expansions within expansions out | `expansions` |
//! | `files` | `mv -n` overwrites | `files` |
//! | `functions` | `export -f` exports nothing | `functions` |
//! | `grep` | copies every file and cuts it into lines | `cargo xtask bench sandbox` |
//! | `gzip` | cannot unpack all that it packs | `gzip` |
//! | `head` | counts a pipe again for every line | `cargo xtask bench sandbox` |
//! | `hooks` | its hooks know nothing of the command | its interface |
//! | `iconv` | writes UTF-8, whatever it is asked for | `iconv` |
//! | `incomplete` | takes the end of a text for the end of a here-document | `incomplete` |
//! | `jq` | `now` is a panic on wasm32; `del` deletes too little | `tests/sandbox/commands.json` without the file |
//! | `last_words` | drops the output of a program that a time limit ends | `tests/node/sandbox-exec.test.mjs` without the file |
//! | `layers` | asks its synthetic files about every path | `cargo xtask bench sandbox` |
//! | `leftovers` | restoring a state does not undo all | `leftovers` |
//! | `limits` | stops at 10,000 commands and after 30 s | its interface |
//! | `long_lines` | `grep` looks at a long line again for each 4 KiB of it | `tests/sandbox/commands.json` without the file |
//! | `ln` | makes a symbolic link without `-s` | `ln` |
//! | `ls` | `-a` leaves `.` and `..` out | `ls` |
//! | `mkdir` | `-m 700` makes a directory `700` | `mkdir` |
//! | `mktemp` | draws from the keys of std's hash maps | a replay |
//! | `nesting` | recurses with every bracket | `nesting` |
//! | `options` | forgets `set -e` and `$?` between executions | `options` |
//! | `order` | compares files that are not sorted without a word | `order` |
//! | `patch` | always changes the new one of the two files that a patch names | `patch` |
//! | `pipes` | gives a whole pipe to one of several readers | `pipes` |
//! | `printf` | `\x00` is left out | `printf` |
//! | `random` | seeds `$RANDOM` and counts `$SECONDS` by its own | a replay |
//! | `rg` | makes a table once in a process | a replay |
//! | `script` | reads a command for the others | its parts |
//! | `sed` | leaves a loop after 1,000 commands, with exit code 0 | `sed` |
//! | `seq` | stops at 100,000 lines | `seq` |
//! | `shuf` | draws from the clock | a replay |
//! | `sleep` | burns time, and stops at 60 s | `sleep` |
//! | `slashes` | drops the slash at the end of a path | `slashes` |
//! | `sort` | `-R` follows from nothing that a replay has | a replay |
//! | `stat` | prints letters that it does not know | `stat` |
//! | `substitutions` | counts brackets in quotes | `substitutions` |
//! | `tar` | cuts long names, and keeps no modes and no links | `tar` |
//! | `tee` | writes U+FFFD for bytes that are not UTF-8 | `tee` |
//! | `timeout` | stops at 300 s | `timeout` |
//! | `tr` | takes a class that is none for no characters | `tr` |
//! | `watcher` | reads the clock once in every poll, in an order that chance decides | its interface |
//! | `yes` | stops at 10,000 lines | `yes` |

pub(super) mod arguments;
#[cfg(feature = "analysis")]
mod braces;
pub(super) mod costs;
mod cut;
#[cfg(feature = "analysis")]
mod descriptors;
#[cfg(feature = "analysis")]
mod devices;
#[cfg(feature = "analysis")]
mod expansions;
mod files;
#[cfg(feature = "analysis")]
mod functions;
pub(super) mod grep;
pub(super) mod hooks;
mod iconv;
pub(super) mod jq;
pub(super) mod last_words;
#[cfg(feature = "analysis")]
mod leftovers;
mod ln;
mod mkdir;
mod nesting;
mod number;
#[cfg(feature = "analysis")]
mod pipes;
pub(super) mod printf;
#[cfg(feature = "analysis")]
pub(super) mod script;
pub(super) mod sed;
mod sort;
#[cfg(feature = "analysis")]
mod substitutions;
mod tr;
pub(super) mod watcher;
#[cfg(feature = "analysis")]
mod words;

#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
mod absent;
#[cfg(any(test, all(target_arch = "wasm32", feature = "sandbox")))]
mod awk;
#[cfg(any(test, all(target_arch = "wasm32", feature = "sandbox")))]
mod bytes;
#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
pub(super) mod checked;
#[cfg(any(test, all(target_arch = "wasm32", feature = "sandbox")))]
mod diff;
#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
mod gzip;
#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
mod head;
#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
pub(super) mod incomplete;
#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
pub(super) mod layers;
#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
pub(super) mod limits;
#[cfg(any(test, all(target_arch = "wasm32", feature = "sandbox")))]
mod long_lines;
#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
mod ls;
#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
mod mktemp;
#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
pub(super) mod options;
#[cfg(any(test, all(target_arch = "wasm32", feature = "sandbox")))]
mod order;
#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
mod patch;
#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
pub(super) mod random;
#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
pub(super) mod rg;
#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
mod seq;
#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
mod shuf;
#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
mod slashes;
#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
mod sleep;
#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
mod stat;
#[cfg(any(test, all(target_arch = "wasm32", feature = "sandbox")))]
mod tar;
#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
mod tee;
#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
mod timeout;
#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
mod yes;
#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
use registry::reason;
#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
pub(super) use registry::register;

#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
mod registry;
