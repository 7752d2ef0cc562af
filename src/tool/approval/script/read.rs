//! From bashkit's syntax tree to a [`Script`].

use std::collections::{BTreeMap, BTreeSet};

use bashkit::parser::{
    Command, CommandList, CompoundCommand, ListOperator, Parser, Redirect, RedirectKind,
    SimpleCommand, WordPart,
};

use super::super::names::{Names, families};
use super::word::{argument, is_number};
use super::{Argument, Call, Script, arithmetic, surface};

/// Variables that bash itself sets to texts of a script's choice.
const TEXTS: [&str; 2] = ["_", "OPTARG"];

/// Reads `text`. What cannot be read is a concern.
pub(in super::super) fn read(text: &str, names: &Names) -> Script {
    let mut reader = Reader {
        names,
        script: Script::default(),
        defined: BTreeSet::new(),
        assigned: BTreeMap::new(),
        counted: Vec::new(),
        variables: Vec::new(),
        unsets: false,
        arrays: false,
        expanded: None,
    };
    match surface::concern(text) {
        Some(concern) => reader.concern(concern),
        None => {
            if let Some(concern) = surface::ambiguity(text) {
                reader.concern(concern);
            }
            reader.parse(text);
        }
    }
    reader.finish()
}

pub(super) struct Reader<'a> {
    pub(super) names: &'a Names,
    pub(super) script: Script,
    /// Functions that surely are defined by now.
    pub(super) defined: BTreeSet<String>,
    /// Variables that the script sets, and whether only to numbers.
    pub(super) assigned: BTreeMap<String, bool>,
    /// Variables whose values are read as arithmetic.
    pub(super) counted: Vec<String>,
    /// Arguments that are variables: call, argument and name.
    pub(super) variables: Vec<((usize, usize), String)>,
    /// Whether something is unset, perhaps a function.
    pub(super) unsets: bool,
    /// Whether a variable is, or may become, an array.
    pub(super) arrays: bool,
    /// A builtin that is given a value which is expanded once more if its
    /// variable is an array.
    pub(super) expanded: Option<String>,
}

impl Reader<'_> {
    fn parse(&mut self, text: &str) {
        // bashkit's own analysis knows limits and doubtful names.
        match bashkit::analysis::analyze(text) {
            Err(_) => return self.concern("it is not understood as a bash script"),
            Ok(analysis) if analysis.truncated => {
                return self.concern("the command is too long to be read");
            }
            Ok(_) => {}
        }
        match Parser::new(text).parse() {
            Ok(script) => {
                for command in &script.commands {
                    self.top_level(command);
                }
            }
            Err(_) => self.concern("it is not understood as a bash script"),
        }
    }

    fn finish(mut self) -> Script {
        if self.unsets {
            for call in &mut self.script.calls {
                call.is_function = false;
            }
        }
        // A number is one word, quoted or not.
        for ((call, index), name) in &self.variables {
            let call = self.script.calls.get_mut(*call);
            if let Some(argument) = call.and_then(|call| call.arguments.get_mut(*index))
                && self.assigned.get(name) == Some(&true)
            {
                *argument = Argument::Value;
            }
        }
        if let Some(builtin) = self.expanded.take().filter(|_| self.arrays) {
            self.concern(format!(
                "`{builtin}` sets an array to a value that is only known when it runs"
            ));
        }
        let doubtful = self.counted.iter().find(|name| {
            self.names.is_dangerous_variable(name)
                || TEXTS.contains(&name.as_str())
                || self.assigned.get(*name) == Some(&false)
        });
        if let Some(name) = doubtful {
            let concern = format!("it counts with ${name}, whose value may be an expression");
            self.script.concerns.push(concern);
        }
        self.script
    }

    pub(super) fn concern(&mut self, concern: impl Into<String>) {
        self.script.concerns.push(concern.into());
    }

    /// A command that surely runs before those after it.
    fn top_level(&mut self, command: &Command) {
        match command {
            Command::Function(function) => {
                self.command(command);
                self.defined.insert(function.name.clone());
            }
            Command::List(list) if !in_background(list) => {
                self.top_level(&list.first);
                for (operator, command) in &list.rest {
                    if *operator == ListOperator::Semicolon {
                        self.top_level(command);
                    } else {
                        self.command(command);
                    }
                }
            }
            _ => self.command(command),
        }
    }

    pub(super) fn commands(&mut self, commands: &[Command]) {
        for command in commands {
            self.command(command);
        }
    }

    fn command(&mut self, command: &Command) {
        match command {
            Command::Simple(simple) => self.simple(simple),
            Command::Pipeline(pipeline) => self.commands(&pipeline.commands),
            Command::List(list) => {
                self.command(&list.first);
                for (_, command) in &list.rest {
                    self.command(command);
                }
            }
            Command::Compound(compound, redirects) => {
                self.compound(compound);
                self.redirects(redirects);
            }
            Command::Function(function) => {
                if !arithmetic::is_name(&function.name) {
                    self.concern("it defines a function with an unusual name");
                } else if self.is_special(&function.name) {
                    self.concern(format!("it defines a function {}", function.name));
                }
                // A body may call itself and what was defined before it.
                let is_new = self.defined.insert(function.name.clone());
                self.command(&function.body);
                if is_new {
                    self.defined.remove(&function.name);
                }
            }
        }
    }

    fn compound(&mut self, compound: &CompoundCommand) {
        match compound {
            CompoundCommand::If(branch) => {
                self.commands(&branch.condition);
                self.commands(&branch.then_branch);
                for (condition, body) in &branch.elif_branches {
                    self.commands(condition);
                    self.commands(body);
                }
                self.commands(branch.else_branch.as_deref().unwrap_or_default());
            }
            CompoundCommand::For(lap) => {
                let words = lap.words.as_deref();
                let numbers = words.is_some_and(|words| words.iter().all(is_number));
                self.assign(&lap.variable, numbers);
                self.words(words.unwrap_or_default());
                self.commands(&lap.body);
            }
            CompoundCommand::ArithmeticFor(lap) => {
                for clause in [&lap.init, &lap.condition, &lap.step] {
                    self.arithmetic(clause);
                }
                self.commands(&lap.body);
            }
            CompoundCommand::While(lap) => {
                self.commands(&lap.condition);
                self.commands(&lap.body);
            }
            CompoundCommand::Until(lap) => {
                self.commands(&lap.condition);
                self.commands(&lap.body);
            }
            CompoundCommand::Case(case) => {
                self.word(&case.word);
                for item in &case.cases {
                    self.words(&item.patterns);
                    self.commands(&item.commands);
                }
            }
            CompoundCommand::Select(choice) => {
                self.assign(&choice.variable, false);
                self.assign("REPLY", false);
                self.words(&choice.words);
                self.commands(&choice.body);
            }
            CompoundCommand::Subshell(commands) | CompoundCommand::BraceGroup(commands) => {
                self.commands(commands);
            }
            CompoundCommand::Arithmetic(expression) => {
                if !arithmetic::is_statement(expression) {
                    self.concern("it has `((…))`, which some shells run as commands");
                }
                self.arithmetic(expression);
            }
            CompoundCommand::Time(time) => {
                // The parser also takes `\time`, a program, for the keyword.
                self.concern("time runs another command; only the exact command can be listed");
                if let Some(command) = &time.command {
                    self.command(command);
                }
            }
            CompoundCommand::Conditional(words) => self.conditional(words),
            CompoundCommand::Coproc(coprocess) => {
                self.concern("it starts a coprocess");
                self.command(&coprocess.body);
            }
        }
    }

    fn simple(&mut self, simple: &SimpleCommand) {
        self.word(&simple.name);
        self.words(&simple.args);
        for assignment in &simple.assignments {
            self.assignment(assignment);
        }
        self.redirects(&simple.redirects);
        let is_bare = !simple.name.quoted
            && matches!(simple.name.parts.as_slice(), [WordPart::Literal(name)] if name.is_empty())
            || simple.name.parts.is_empty();
        // `x=1`, `> file` and the end of `command &` have no name.
        if is_bare && simple.args.is_empty() {
            return;
        }
        let Argument::Literal(name) = argument(&simple.name) else {
            return self.concern("the name of a command is only known when it runs");
        };
        if name.is_empty() {
            return self.concern("the name of a command is empty");
        }
        if families(&name)
            .iter()
            .any(|name| self.names.handing_over.contains(name))
        {
            return self.concern(format!("`{name}` runs a text as commands"));
        }
        self.builtin(&name, &simple.args);
        let is_function = self.defined.contains(&name);
        for (index, word) in simple.args.iter().enumerate() {
            if let [WordPart::Variable(variable)] = word.parts.as_slice() {
                let place = (self.script.calls.len(), index);
                self.variables.push((place, variable.clone()));
            }
        }
        self.script.calls.push(Call {
            name,
            arguments: simple.args.iter().map(argument).collect(),
            is_function,
        });
    }

    fn redirects(&mut self, redirects: &[Redirect]) {
        for redirect in redirects {
            self.word(&redirect.target);
            if let Some(name) = &redirect.fd_var {
                self.assign(name, true);
            }
            let target = match argument(&redirect.target) {
                // A home directory in what looks like an assignment.
                Argument::Literal(path) if path.contains("=~") || path.contains(":~") => {
                    Argument::Unknown
                }
                target => target,
            };
            match redirect.kind {
                RedirectKind::Output
                | RedirectKind::Clobber
                | RedirectKind::Append
                | RedirectKind::OutputBoth
                | RedirectKind::ReadWrite => self.script.writes.push(target),
                // `>&file` writes a file, `>&2` and `>&-` do not.
                RedirectKind::DupOutput | RedirectKind::DupInput => {
                    let is_descriptor = target.literal().is_some_and(|text| {
                        let digits = text.strip_suffix('-').unwrap_or(text);
                        !text.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
                    });
                    if !is_descriptor {
                        self.script.writes.push(target);
                    }
                }
                RedirectKind::Input => {
                    self.script.opens = true;
                    let is_network = match &target {
                        Argument::Literal(path)
                        | Argument::Beginning(path)
                        | Argument::Pattern(path) => is_network(path),
                        Argument::Value | Argument::Unknown => false,
                    };
                    if is_network {
                        self.concern("it opens a network connection");
                    }
                }
                RedirectKind::HereDoc | RedirectKind::HereDocStrip | RedirectKind::HereString => {}
            }
        }
    }

    /// Whether a function of this name might not be what a call of it runs.
    fn is_special(&self, name: &str) -> bool {
        let names = self.names;
        let lists = [
            &names.control,
            &names.handing_over,
            &names.shells,
            &names.builtins,
            &names.wrappers,
            &names.assigning_builtins,
            &names.naming_builtins,
        ];
        lists
            .iter()
            .any(|list| list.iter().any(|known| known == name))
            || matches!(
                name,
                "set" | "times" | "trap" | "exec" | "cd" | "printf" | "test"
            )
    }
}

fn in_background(list: &CommandList) -> bool {
    let mut operators = list.rest.iter().map(|(operator, _)| *operator);
    operators.any(|operator| operator == ListOperator::Background)
}

/// bash opens connections under these names.
fn is_network(path: &str) -> bool {
    path.starts_with("/dev/tcp") || path.starts_with("/dev/udp")
}
