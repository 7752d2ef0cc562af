//! What begins with `/`: said to the program, not to the model.

/// Their names, and what they are for.
pub(super) const COMMANDS: [(&str, &str); 9] = [
    (
        "/compact",
        "have the model summarise the older part of the conversation",
    ),
    ("/cost", "tokens and price of the session so far"),
    ("/effort", "how much the model thinks: /effort high"),
    ("/help", "keys and commands"),
    ("/model", "the model from the next request on: /model ID"),
    ("/quit", "leave"),
    (
        "/resume",
        "go on with another session of this directory: /resume ID",
    ),
    (
        "/undo",
        "undo what the last round changed in files, or from a round on: /undo 3",
    ),
    ("/verbose", "show reasoning, or leave it out"),
];

/// What a person types to the program.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    Compact,
    Cost,
    Effort(Option<String>),
    Help,
    Model(Option<String>),
    Quit,
    Resume(Option<String>),
    Undo(Option<u64>),
    Verbose,
}

/// The command that `text` is, if it is one.
///
/// # Errors
/// It looks like one and is none; one sentence.
pub(super) fn parse(text: &str) -> Option<Result<Command, String>> {
    let text = text.trim();
    let mut words = text.split_whitespace();
    let name = words.next()?.strip_prefix('/')?;
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_lowercase()) {
        // A path, such as /etc/hosts.
        return None;
    }
    let argument = words.next().map(str::to_owned);
    if words.next().is_some() {
        return Some(Err(format!(
            "/{name} takes one word at most; /help has all commands"
        )));
    }
    let number = |text: &String| {
        text.parse()
            .map_err(|_| format!("/{name} {text}: that is no number of a round"))
    };
    let command = match name {
        "compact" => Command::Compact,
        "cost" => Command::Cost,
        "effort" => Command::Effort(argument),
        "help" => Command::Help,
        "model" => Command::Model(argument),
        "quit" | "exit" => Command::Quit,
        "resume" => Command::Resume(argument),
        "undo" => match argument.as_ref().map(number).transpose() {
            Ok(round) => Command::Undo(round),
            Err(why) => return Some(Err(why)),
        },
        "verbose" => Command::Verbose,
        _ => return Some(Err(format!("there is no command /{name}; /help has all"))),
    };
    Some(Ok(command))
}

/// What `/help` shows.
pub(super) fn help() -> String {
    let mut text = String::from(
        "Enter sends; while the model works, what you send reaches it after the round it is in.\n\
         Alt+Enter, Ctrl+J or a \\ at the end begin a new line. @ completes the path of a file.\n\
         Esc interrupts the model. Ctrl+C does so, too; twice it leaves. Ctrl+D leaves.\n\
         ↑ ↓ call up what you sent before. Ctrl+U, K and W delete to the start, to the end and \
         a word.\n",
    );
    for (name, about) in COMMANDS {
        text.push_str(&format!("{name:<9} {about}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsed() {
        let check = |text: &str, expected: Option<Command>| {
            assert_eq!(parse(text).map(|command| command.expect(text)), expected);
        };
        check("/help", Some(Command::Help));
        check(
            " /model gpt-5 ",
            Some(Command::Model(Some("gpt-5".to_owned()))),
        );
        check("/undo", Some(Command::Undo(None)));
        check("/undo 3", Some(Command::Undo(Some(3))));
        check("/exit", Some(Command::Quit));
        check("/etc/hosts is wrong", None);
        check("/", None);
        check("fix /model", None);
    }

    #[test]
    fn refused() {
        for text in ["/nothing", "/undo x", "/model a b"] {
            assert!(matches!(parse(text), Some(Err(_))), "{text}");
        }
    }

    #[test]
    fn all_are_known() {
        for (name, _) in COMMANDS {
            assert!(matches!(parse(name), Some(Ok(_))), "{name}");
            assert!(help().contains(name));
        }
    }
}
