//! `hermitcrab models`: the model catalogue.

use std::io::{self, Write};

use hermitcrab::llm::{ModelInfo, list_models};

use crate::cli::ModelsOptions;
use crate::failure::{Code, Failure, reason};

/// Prints the catalogue, a line per model.
///
/// # Errors
/// The provider has no models there, or stdout cannot be written.
pub(crate) fn models(options: &ModelsOptions) -> Result<Code, Failure> {
    let models = list_models(options.provider.as_deref());
    if models.is_empty() {
        let provider = options.provider.as_deref().unwrap_or_default();
        return Err(Failure::usage(format!(
            "no model of {provider:?} is known: leave out --provider to see all"
        )));
    }
    let mut out = io::stdout().lock();
    let written = match options.json {
        true => serde_json::to_writer_pretty(&mut out, &models)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(out)),
        false => out.write_all(table(&models).as_bytes()),
    };
    written.map_err(|error| Failure::failed(format!("cannot write: {}", reason(&error))))?;
    Ok(Code::DONE)
}

/// Columns: id, provider, context window in tokens, knowledge cutoff, name.
fn table(models: &[&ModelInfo]) -> String {
    let rows: Vec<[String; 5]> = models
        .iter()
        .map(|model| {
            [
                model.id.clone(),
                model.provider.clone(),
                format!("{}k", model.context_window / 1_000),
                model
                    .knowledge_cutoff
                    .clone()
                    .unwrap_or_else(|| "-".to_owned()),
                model.display_name.clone(),
            ]
        })
        .collect();
    let head = ["MODEL", "PROVIDER", "CONTEXT", "KNOWS TO", "NAME"].map(str::to_owned);
    let mut text = String::new();
    for row in std::iter::once(&head).chain(&rows) {
        let line = row.iter().enumerate().map(|(column, cell)| {
            let width = rows
                .iter()
                .chain([&head])
                .map(|row| row[column].len())
                .max();
            format!("{cell:<width$}", width = width.unwrap_or_default())
        });
        text.push_str(line.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_under_each_other() {
        let text = table(&list_models(Some("anthropic")));
        let lines: Vec<&str> = text.lines().collect();
        let column = lines[0].find("CONTEXT").expect("a head");
        assert!(lines.len() > 3);
        for line in &lines[1..] {
            assert!(line.as_bytes()[column].is_ascii_digit(), "{line}");
            assert_eq!(line.as_bytes()[column - 1], b' ', "{line}");
        }
    }
}
