//! The terminal exports: shells for people over the files of a sandbox. A line
//! runs through [`Core::start_exec`] with the terminal's number.

use std::rc::Rc;

use wasm_bindgen::prelude::*;

use super::{Core, convert, invalid};
use crate::memory::Terminal;
use crate::session::InstanceCall;

#[wasm_bindgen]
impl Core {
    /// Adds a shell over the files of a sandbox. Returns its number, which is
    /// that of an environment.
    #[wasm_bindgen(js_name = openTerminal)]
    pub fn open_terminal(&self, environment: u32) -> Result<u32, JsValue> {
        self.small_number(InstanceCall::OpenTerminal { environment })
    }

    /// Forgets a shell.
    #[wasm_bindgen(js_name = closeTerminal)]
    pub fn close_terminal(&self, terminal: u32) {
        // Unknown ones are ignored.
        let _ = self.carry_out(InstanceCall::CloseTerminal { terminal });
    }

    /// What a prompt shows: an object, see `crate::memory::terminal::TerminalState`.
    #[wasm_bindgen(js_name = terminalState)]
    pub fn terminal_state(&self, terminal: u32) -> Result<JsValue, JsValue> {
        Ok(convert::to_object(&self.terminal(terminal)?.state()))
    }

    /// Whether a command that begins with `text` goes on in the next line.
    #[wasm_bindgen(js_name = terminalIncomplete)]
    pub fn terminal_incomplete(&self, terminal: u32, text: &str) -> Result<bool, JsValue> {
        Ok(self.terminal(terminal)?.is_incomplete(text))
    }

    /// Names that can stand at the head of a command, sorted.
    #[wasm_bindgen(js_name = terminalCommands)]
    pub fn terminal_commands(&self, terminal: u32) -> Result<Vec<String>, JsValue> {
        Ok(self.terminal(terminal)?.command_names())
    }

    fn terminal(&self, number: u32) -> Result<Rc<Terminal>, JsValue> {
        let terminal = self.driver.look(|instance| instance.terminal(number));
        terminal.ok_or_else(|| invalid(format!("there is no terminal {number}; it was closed")))
    }
}
