//! From bashkit's syntax tree to a [`Script`].

use std::collections::{BTreeMap, BTreeSet};

use bashkit::parser::{
    Assignment, AssignmentValue, Command, CommandList, CompoundCommand, ListOperator, ParameterOp,
    Parser, Redirect, RedirectKind, SimpleCommand, Word, WordPart,
};

use super::super::names::{Names, families};
use super::word::{argument, beginning};
use super::{Argument, Call, Script, arithmetic, surface};

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
    };
    match surface::concern(text) {
        Some(concern) => reader.concern(concern),
        None => reader.parse(text),
    }
    reader.finish()
}

struct Reader<'a> {
    names: &'a Names,
    script: Script,
    /// Functions that surely are defined by now.
    defined: BTreeSet<String>,
    /// Variables that the script sets, and whether only to numbers.
    assigned: BTreeMap<String, bool>,
    /// Variables whose values are read as arithmetic.
    counted: Vec<String>,
    /// Arguments that are variables: call, argument and name.
    variables: Vec<((usize, usize), String)>,
    /// Whether something is unset, perhaps a function.
    unsets: bool,
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
        let doubtful = self.counted.iter().find(|name| {
            self.names.is_dangerous_variable(name) || self.assigned.get(*name) == Some(&false)
        });
        if let Some(name) = doubtful {
            let concern = format!("it counts with ${name}, whose value may be an expression");
            self.script.concerns.push(concern);
        }
        self.script
    }

    fn concern(&mut self, concern: impl Into<String>) {
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

    fn commands(&mut self, commands: &[Command]) {
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

    /// What builtins do to the meaning of the rest.
    fn builtin(&mut self, name: &str, arguments: &[Word]) {
        let is_one_of = |list: &[String]| list.iter().any(|known| known == name);
        if is_one_of(&self.names.assigning_builtins) {
            arguments.iter().for_each(|word| self.declared(name, word));
        } else if is_one_of(&self.names.naming_builtins) {
            arguments.iter().for_each(|word| self.named(name, word));
            self.assign("REPLY", false);
        } else if name == "printf" {
            self.printf(arguments);
        } else if matches!(name, "cd" | "pushd" | "popd") {
            self.script.changes_directory = true;
        } else if name == "let" {
            self.concern("`let` counts with texts");
        }
    }

    /// An argument of `export` and its like.
    fn declared(&mut self, builtin: &str, word: &Word) {
        if let [WordPart::CompoundAssignment { name, .. }] = word.parts.as_slice() {
            return self.assign(name, false);
        }
        let (text, goes_on) = beginning(word);
        if let Some(letters) = text.strip_prefix(['-', '+']) {
            // `-i` counts with what is assigned, `-n` makes another name of it.
            if goes_on || letters.contains(['i', 'n']) && !(builtin == "export" && letters == "n") {
                self.concern(format!("`{builtin}` has the option {text}"));
            }
            return;
        }
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text.as_str(), None),
        };
        let name = name.strip_suffix('+').unwrap_or(name);
        if !arithmetic::is_name(name) || (goes_on && value.is_none()) {
            return self.concern(format!(
                "`{builtin}` sets a variable that is not plainly named"
            ));
        }
        match value {
            Some(value) => self.assign(name, !goes_on && arithmetic::is_number(value)),
            // `export PATH` and `readonly x` leave the value; `local x` does not.
            None if self.names.is_dangerous_variable(name) => self.assign(name, false),
            None => {}
        }
    }

    /// An argument of `read` and its like.
    fn named(&mut self, builtin: &str, word: &Word) {
        let (text, goes_on) = beginning(word);
        if goes_on || text.contains(['[', '{', '*', '?']) {
            return self.concern(format!(
                "`{builtin}` sets a variable that is not plainly named"
            ));
        }
        self.unsets |= builtin == "unset";
        if text.starts_with('-') {
            // A name may follow its option at once, as in `-aPATH`.
            let attached = text.get(2..).unwrap_or_default();
            if self.names.is_dangerous_variable(attached) {
                self.assign(attached, false);
            }
        } else if arithmetic::is_name(&text) {
            self.assign(&text, false);
        }
    }

    /// `printf -v name` sets a variable.
    fn printf(&mut self, arguments: &[Word]) {
        let Some(first) = arguments.first() else {
            return;
        };
        let (text, goes_on) = beginning(first);
        if text.is_empty() && goes_on || argument(first) == Argument::Unknown {
            return self.concern("the first argument of `printf` is only known when it runs");
        }
        let name = match text.strip_prefix("-v") {
            None => return,
            Some("") => arguments.get(1).map(beginning),
            Some(name) => Some((name.to_owned(), goes_on)),
        };
        match name {
            Some((name, false)) if arithmetic::is_name(&name) => self.assign(&name, false),
            _ => self.concern("`printf -v` sets a variable that is not plainly named"),
        }
    }

    fn assignment(&mut self, assignment: &Assignment) {
        if let Some(index) = &assignment.index {
            self.arithmetic(index);
            // Elsewhere than in bash `x[a > b]=1` is a command.
            if index.contains(|char: char| !char.is_ascii_alphanumeric() && !"_$+-*".contains(char))
            {
                self.concern("it sets an element whose subscript is not plain");
            }
        }
        match &assignment.value {
            AssignmentValue::Scalar(word) => {
                self.word(word);
                self.assign(&assignment.name, is_number(word));
            }
            AssignmentValue::Array(words) => {
                self.words(words);
                let numbers = words.iter().all(is_number);
                self.assign(&assignment.name, numbers);
            }
        }
    }

    fn assign(&mut self, name: &str, number: bool) {
        if !arithmetic::is_name(name) {
            self.concern("it sets a variable that is not plainly named");
        } else if self.names.is_dangerous_variable(name) {
            self.concern(format!("it sets {name}, which changes what programs do"));
        }
        let known = self.assigned.entry(name.to_owned()).or_insert(true);
        *known &= number;
    }

    fn redirects(&mut self, redirects: &[Redirect]) {
        for redirect in redirects {
            self.word(&redirect.target);
            if let Some(name) = &redirect.fd_var {
                self.assign(name, true);
            }
            let target = argument(&redirect.target);
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
                        digits.bytes().all(|byte| byte.is_ascii_digit())
                    });
                    if !is_descriptor {
                        self.script.writes.push(target);
                    }
                }
                RedirectKind::Input => {
                    let is_network = match &target {
                        Argument::Literal(path) | Argument::Pattern(path) => is_network(path),
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

    fn words(&mut self, words: &[Word]) {
        for word in words {
            self.word(word);
        }
    }

    /// What runs while `word` is expanded.
    fn word(&mut self, word: &Word) {
        for part in &word.parts {
            match part {
                WordPart::Literal(_)
                | WordPart::Variable(_)
                | WordPart::ArrayLength(_)
                | WordPart::ArrayIndices { .. }
                | WordPart::PrefixMatch { .. } => {}
                WordPart::CommandSubstitution(commands)
                | WordPart::ProcessSubstitution { commands, .. } => {
                    // The parser leaves out what it does not understand.
                    if commands.is_empty() {
                        self.concern("it has a substitution that is not understood");
                    }
                    let outside = self.defined.clone();
                    self.commands(commands);
                    self.defined = outside;
                }
                WordPart::ArithmeticExpansion(expression) => self.arithmetic(expression),
                WordPart::CompoundAssignment { elements, .. } => self.words(elements),
                WordPart::ParameterExpansion {
                    name,
                    operator,
                    operand,
                    ..
                } => {
                    self.parameter(name);
                    self.operand(operand);
                    match operator {
                        ParameterOp::AssignDefault => {
                            self.assign(name, arithmetic::is_number(operand));
                        }
                        ParameterOp::ReplaceFirst {
                            pattern,
                            replacement,
                        }
                        | ParameterOp::ReplaceAll {
                            pattern,
                            replacement,
                        } => {
                            self.operand(pattern);
                            self.operand(replacement);
                        }
                        _ => {}
                    }
                }
                WordPart::Length(name) => self.parameter(name),
                WordPart::ArrayAccess { name, index } => {
                    self.parameter(name);
                    if !matches!(index.as_str(), "@" | "*") {
                        self.arithmetic(index);
                    }
                }
                WordPart::Substring {
                    name,
                    offset,
                    length,
                } => {
                    self.parameter(name);
                    self.arithmetic(offset);
                    if let Some(length) = length {
                        self.arithmetic(length);
                    }
                }
                WordPart::Transformation { name, operator } => {
                    self.parameter(name);
                    if *operator == 'P' {
                        self.concern("it expands a value as a prompt");
                    }
                }
                WordPart::IndirectExpansion { .. } | WordPart::IndirectSuffix { .. } => {
                    self.concern("it expands a variable that another one names");
                }
                WordPart::BadSubstitution(_) => {
                    self.concern("it has an expansion that is not understood");
                }
            }
        }
    }

    /// The name in `${name…}`.
    fn parameter(&mut self, name: &str) {
        let is_plain = arithmetic::is_name(name)
            || matches!(name, "@" | "*" | "#" | "?" | "$" | "!" | "-")
            || name.bytes().all(|byte| byte.is_ascii_digit());
        if is_plain {
            return;
        }
        let subscript = name
            .split_once('[')
            .filter(|(name, _)| arithmetic::is_name(name));
        match subscript.and_then(|(_, rest)| rest.strip_suffix(']')) {
            Some("@" | "*") => {}
            Some(index) => self.arithmetic(index),
            None => self.concern("it has an expansion that is not understood"),
        }
    }

    /// A text that is expanded only when it is needed.
    fn operand(&mut self, text: &str) {
        let is_plain = text.match_indices('$').all(|(at, _)| {
            let next = text[at + 1..].chars().next();
            next.is_some_and(|next| next.is_ascii_alphanumeric() || next == '_')
        });
        // Shells differ on where a here-document begins whose line goes on in
        // the braces.
        let is_odd = text.contains(['`', '\\', '\n'])
            || ["<(", ">(", "<<"].iter().any(|start| text.contains(start));
        if !is_plain || is_odd {
            self.concern("it has an expansion within an expansion");
        }
    }

    fn arithmetic(&mut self, expression: &str) {
        match arithmetic::names(expression) {
            Some(names) => self.counted.extend(names),
            None => self.concern("it has arithmetic with an expansion or a subscript"),
        }
    }

    /// `[[ … ]]`: some of its operators count with their operands.
    fn conditional(&mut self, words: &[Word]) {
        self.words(words);
        let operator = |index: usize| words.get(index).map(|word| beginning(word).0);
        for index in 0..words.len() {
            match operator(index).as_deref() {
                Some("-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge") => {
                    let before = index.checked_sub(1).and_then(|index| words.get(index));
                    for operand in [before, words.get(index + 1)].into_iter().flatten() {
                        self.counted_word(operand);
                    }
                }
                // A shell that does not know `[[` writes a file.
                Some("<" | ">") => self.concern("it compares with `<` or `>`"),
                Some("-v" | "-R") => {
                    let plain = operator(index + 1).is_some_and(|name| arithmetic::is_name(&name));
                    if !plain {
                        self.concern("it looks at a variable that is not plainly named");
                    }
                }
                _ => {}
            }
        }
    }

    fn counted_word(&mut self, word: &Word) {
        for part in &word.parts {
            match part {
                WordPart::Literal(text) => self.arithmetic(text),
                WordPart::Variable(name) => self.arithmetic(&format!("${name}")),
                WordPart::ArithmeticExpansion(_)
                | WordPart::ArrayLength(_)
                | WordPart::Length(_) => {}
                _ => self.concern("it counts with what is only known when it runs"),
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

/// Whether `word` is surely a number, or a sequence of them such as `{1..5}`.
fn is_number(word: &Word) -> bool {
    if let [WordPart::ArithmeticExpansion(_) | WordPart::Length(_) | WordPart::ArrayLength(_)] =
        word.parts.as_slice()
    {
        return true;
    }
    let (text, goes_on) = beginning(word);
    let inner = text
        .strip_prefix('{')
        .and_then(|text| text.strip_suffix('}'));
    !goes_on
        && match inner {
            Some(sequence) => sequence.split("..").all(arithmetic::is_number),
            None => arithmetic::is_number(&text),
        }
}

/// bash opens connections under these names.
fn is_network(path: &str) -> bool {
    path.starts_with("/dev/tcp") || path.starts_with("/dev/udp")
}
