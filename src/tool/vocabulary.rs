//! What the model calls the executors and their parameters, for messages and
//! prompts that name them.

/// The names of a set of declarations. Where two tools share an executor, the
/// first one counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vocabulary {
    tools: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    executor: String,
    name: String,
    /// Executor's name and advertised name.
    parameters: Vec<(String, String)>,
}

impl Vocabulary {
    /// Adds a tool; `parameters` are the executor's, each with what the model calls it.
    pub(super) fn add<'a>(
        &mut self,
        executor: &str,
        name: &str,
        parameters: impl Iterator<Item = (&'a str, &'a str)>,
    ) {
        let parameters =
            parameters.map(|(parameter, advertised)| (parameter.to_owned(), advertised.to_owned()));
        self.tools.push(Entry {
            executor: executor.to_owned(),
            name: name.to_owned(),
            parameters: parameters.collect(),
        });
    }

    /// The part of it that is about tools which `is_there` knows.
    pub(super) fn only(&self, is_there: impl Fn(&str) -> bool) -> Self {
        let there = self.tools.iter().filter(|entry| is_there(&entry.name));
        Self {
            tools: there.cloned().collect(),
        }
    }

    /// Name of the tool that `executor` runs.
    pub fn tool(&self, executor: &str) -> Option<&str> {
        self.find(executor).map(|entry| entry.name.as_str())
    }

    /// What that tool calls the executor's `parameter`.
    pub fn parameter(&self, executor: &str, parameter: &str) -> Option<&str> {
        let parameters = &self.find(executor)?.parameters;
        let found = parameters.iter().find(|(own, _)| own == parameter);
        found.map(|(_, advertised)| advertised.as_str())
    }

    fn find(&self, executor: &str) -> Option<&Entry> {
        self.tools.iter().find(|entry| entry.executor == executor)
    }
}
