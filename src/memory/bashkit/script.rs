//! `Script`: what the sandbox must know of a command's text before it runs, by one
//! pass over bashkit's own syntax tree.
//!
//! What bashkit would get wrong without a word is found here and refused with a
//! sentence; each kind has a file. Text that bashkit's parser refuses is read as far
//! as it is understood: bashkit runs that, too, and reports the rest itself.

use bashkit::parser::{
    AssignmentValue, Command, CompoundCommand, ListOperator, Parser, Pipeline, Redirect,
    RedirectKind, SimpleCommand, Word, WordPart,
};

use super::leftovers::Leftovers;
use super::words::literal;
use super::{braces, descriptors, devices, expansions, functions, pipes, substitutions};

/// How deep a command is read: what bashkit's parser takes, and as much within words.
const MAX_DEPTH: usize = 200;
/// Tokens that are read at most, as in a run.
const MAX_OPERATIONS: usize = 100_000_000;

/// What a text says.
#[derive(Debug, Default)]
pub(in crate::memory) struct Script {
    /// Why it cannot be run.
    pub(in crate::memory) problem: Option<String>,
    /// What its pipes lead to.
    pub(in crate::memory) pipes: pipes::Pipes,
    /// Bytes that an endless device must have for it.
    pub(in crate::memory) device_bytes: usize,
    /// What it may leave in a shell.
    pub(in crate::memory) leftovers: Leftovers,
}

impl Script {
    /// Why it cannot be run, with a line end.
    pub(in crate::memory) fn refusal(&self) -> Option<String> {
        let problem = self.problem.as_ref()?;
        Some(format!("hermitcrab: {problem}\n"))
    }
}

/// Reads `text`.
pub(in crate::memory) fn read(text: &str) -> Script {
    let mut reader = Reader {
        script: Script::default(),
        names_devices: text.contains("/dev/"),
        depth: 0,
    };
    reader.text(text);
    reader.script
}

struct Reader {
    script: Script,
    names_devices: bool,
    depth: usize,
}

impl Reader {
    fn problem(&mut self, problem: Option<String>) {
        if self.script.problem.is_none() {
            self.script.problem = problem;
        }
    }

    /// Reads what is within something else.
    fn within(&mut self, read: impl FnOnce(&mut Self)) {
        if self.depth == MAX_DEPTH {
            let problem = "commands nested so deep are not supported in the sandbox";
            return self.problem(Some(problem.to_owned()));
        }
        self.depth += 1;
        read(self);
        self.depth -= 1;
    }

    fn text(&mut self, text: &str) {
        let parser = Parser::with_limits(text, MAX_DEPTH, MAX_OPERATIONS);
        let (script, _) = parser.parse_recovering();
        self.within(|reader| reader.commands(&script.commands));
    }

    fn commands(&mut self, commands: &[Command]) {
        for command in commands {
            self.command(command);
        }
    }

    fn command(&mut self, command: &Command) {
        self.within(|reader| match command {
            Command::Simple(simple) => reader.simple(simple),
            Command::Pipeline(pipeline) => reader.pipeline(pipeline),
            Command::List(list) => {
                reader.command(&list.first);
                for (operator, command) in &list.rest {
                    reader.script.leftovers.in_background |= *operator == ListOperator::Background;
                    reader.command(command);
                }
            }
            Command::Compound(compound, redirects) => {
                reader.compound(compound);
                reader.redirects(redirects);
            }
            Command::Function(function) => {
                reader.script.pipes.shared = true;
                reader.command(&function.body);
            }
        });
    }

    fn pipeline(&mut self, pipeline: &Pipeline) {
        for command in pipeline.commands.iter().skip(1) {
            self.script.pipes.lead_to(command);
        }
        self.commands(&pipeline.commands);
    }

    fn simple(&mut self, simple: &SimpleCommand) {
        self.problem(functions::problem(simple));
        self.problem(descriptors::problem(simple));
        if self.names_devices {
            let bytes = devices::needed_bytes(simple);
            self.script.device_bytes = self.script.device_bytes.max(bytes);
        }
        self.word(&simple.name, true);
        self.words(&simple.args);
        for assignment in &simple.assignments {
            let index = assignment.index.as_deref().unwrap_or_default();
            self.problem(expansions::in_arithmetic(index));
            match &assignment.value {
                AssignmentValue::Scalar(word) => self.word(word, false),
                AssignmentValue::Array(words) => self.words(words),
            }
        }
        self.redirects(&simple.redirects);
        if literal(&simple.name).is_some_and(|name| name == "bash" || name == "sh") {
            self.standard_input(&simple.redirects);
        }
    }

    /// What a shell runs as its standard input, where the command says it.
    fn standard_input(&mut self, redirects: &[Redirect]) {
        for redirect in redirects {
            let is_text = matches!(
                redirect.kind,
                RedirectKind::HereDoc | RedirectKind::HereDocStrip | RedirectKind::HereString
            );
            if is_text && let Some(text) = literal(&redirect.target) {
                self.within(|reader| reader.text(&text));
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
                self.words(lap.words.as_deref().unwrap_or_default());
                self.commands(&lap.body);
            }
            CompoundCommand::Select(choice) => {
                self.words(&choice.words);
                self.commands(&choice.body);
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
                self.word(&case.word, false);
                for item in &case.cases {
                    for pattern in &item.patterns {
                        self.word(pattern, false);
                    }
                    self.commands(&item.commands);
                }
            }
            CompoundCommand::Subshell(commands) | CompoundCommand::BraceGroup(commands) => {
                self.commands(commands);
            }
            CompoundCommand::Arithmetic(expression) => self.arithmetic(expression),
            CompoundCommand::Conditional(words) => {
                for word in words {
                    self.word(word, false);
                }
            }
            CompoundCommand::Time(time) => {
                if let Some(command) = &time.command {
                    self.command(command);
                }
            }
            CompoundCommand::Coproc(coprocess) => {
                self.script.pipes.shared = true;
                self.script.leftovers.in_background = true;
                self.command(&coprocess.body);
            }
        }
    }

    fn redirects(&mut self, redirects: &[Redirect]) {
        for redirect in redirects {
            let mut parts = redirect.target.parts.iter();
            let is_process = |part: &WordPart| matches!(part, WordPart::ProcessSubstitution { .. });
            self.script.pipes.shared |= parts.any(is_process);
            self.word(&redirect.target, false);
        }
    }

    /// Words that may become several: arguments, and those of `for`.
    fn words(&mut self, words: &[Word]) {
        for word in words {
            self.word(word, true);
        }
    }

    fn word(&mut self, word: &Word, listed: bool) {
        if listed {
            self.problem(braces::problem(word));
        }
        for part in &word.parts {
            self.part(part, listed);
        }
    }

    fn part(&mut self, part: &WordPart, listed: bool) {
        self.problem(expansions::problem(part, listed));
        match part {
            WordPart::Literal(text) => self.script.leftovers.say(text),
            WordPart::CommandSubstitution(commands) => {
                self.problem(substitutions::as_subshell(commands));
                self.commands(commands);
            }
            WordPart::ProcessSubstitution { commands, .. } => self.commands(commands),
            WordPart::CompoundAssignment { elements, .. } => self.words(elements),
            WordPart::ArithmeticExpansion(expression) => self.arithmetic(expression),
            WordPart::ParameterExpansion { operand, .. }
            | WordPart::IndirectExpansion { operand, .. } => self.operand(operand),
            _ => {}
        }
    }

    /// The text behind an operator of an expansion: a word. What bashkit makes of the
    /// expansions in it, `expansions` has said.
    fn operand(&mut self, operand: &str) {
        self.script.leftovers.say(operand);
        if !operand.contains(['$', '`']) {
            return;
        }
        let word = Parser::parse_word_string(operand);
        self.within(|reader| {
            for part in &word.parts {
                match part {
                    WordPart::CommandSubstitution(commands) => reader.commands(commands),
                    WordPart::ArithmeticExpansion(expression) => reader.arithmetic(expression),
                    WordPart::ParameterExpansion { operand, .. } => reader.operand(operand),
                    _ => {}
                }
            }
        });
    }

    fn arithmetic(&mut self, expression: &str) {
        self.problem(expansions::in_arithmetic(expression));
        match substitutions::in_arithmetic(expression) {
            Ok(scripts) => self.within(|reader| {
                for script in scripts {
                    reader.commands(&script.commands);
                }
            }),
            Err(problem) => self.problem(Some(problem)),
        }
    }
}

/// A script in place of the one at `path`, that says why that cannot be run.
pub(in crate::memory) fn instead_of_script(path: &str, script: &str) -> Option<String> {
    let problem = read(script).problem?;
    let sentence = format!("hermitcrab: {path}: {problem}").replace('\'', "'\\''");
    Some(format!(
        "printf '%s\\n' '{sentence}' >&2; return 1 2>/dev/null || exit 1\n"
    ))
}

/// The file that the builtin `name` runs as a script.
pub(in crate::memory) fn script_file(name: &str, args: &[String]) -> Option<String> {
    let is_shell = ["bash", "sh", "source", "."].contains(&name);
    let file = args.iter().find(|arg| !arg.starts_with('-'));
    file.filter(|_| is_shell && script_of(name, args).is_none())
        .cloned()
}

/// The text that the builtin `name` runs as a script.
pub(in crate::memory) fn script_of(name: &str, args: &[String]) -> Option<String> {
    match name {
        "eval" => Some(args.join(" ")),
        "trap" => args.iter().find(|arg| !arg.starts_with('-')).cloned(),
        "bash" | "sh" => {
            let options = args.iter().take_while(|arg| arg.starts_with('-'));
            let is_text = |arg: &String| !arg.starts_with("--") && arg.contains('c');
            let at = options.enumerate().find(|(_, arg)| is_text(arg))?.0;
            args[at + 1..]
                .iter()
                .find(|arg| !arg.starts_with('-'))
                .cloned()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_builtins_run() {
        let check = |name: &str, args: &[&str], expected: Option<&str>| {
            let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            assert_eq!(
                script_of(name, &args).as_deref(),
                expected,
                "{name} {args:?}"
            );
        };
        check("eval", &["echo", "$x"], Some("echo $x"));
        check("trap", &["--", "ls $x", "EXIT"], Some("ls $x"));
        check("bash", &["-c", "ls", "a"], Some("ls"));
        check("sh", &["-e", "-xc", "ls"], Some("ls"));
        check("bash", &["--norc", "run.sh", "-c", "x"], None);
        check("bash", &["run.sh"], None);
        check("echo", &["-c", "x"], None);
    }
}
