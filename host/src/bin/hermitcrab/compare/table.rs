//! The table of a comparison: a line for each model, medians over its branches.

use std::time::Duration;

use hermitcrab_host::eval::{Branch, BranchOutcome};

use crate::eval;

/// The table of `branches`, which stand model by model.
pub(super) fn of(branches: &[Branch], is_checked: bool) -> String {
    let mut models: Vec<Model<'_>> = Vec::new();
    for branch in branches {
        let same = |model: &&mut Model<'_>| {
            (model.provider, model.name) == (&branch.provider, &branch.model)
        };
        match models.iter_mut().find(same) {
            Some(model) => model.branches.push(branch),
            None => models.push(Model {
                provider: &branch.provider,
                name: &branch.model,
                branches: vec![branch],
            }),
        }
    }
    let has_errors = models.iter().any(|model| model.errors() > 0);
    let mut rows = vec![head(is_checked, has_errors)];
    rows.extend(models.iter().map(|model| {
        let namesakes = models.iter().filter(|other| other.name == model.name);
        let is_ambiguous = namesakes.count() > 1;
        model.row(is_ambiguous, is_checked, has_errors)
    }));
    let mut text = laid_out(&rows);
    if models.iter().any(|model| model.branches.len() > 1) {
        text += "medians over the branches of a model\n";
    }
    text
}

struct Model<'a> {
    provider: &'a String,
    name: &'a String,
    branches: Vec<&'a Branch>,
}

fn head(is_checked: bool, has_errors: bool) -> Vec<String> {
    let mut row = vec!["MODEL", if is_checked { "PASSED" } else { "ENDED" }];
    if has_errors {
        row.push("ERRORS");
    }
    row.extend([
        "ROUNDS", "READ", "CACHED", "WRITTEN", "COST", "TIME", "DIFF",
    ]);
    row.into_iter().map(str::to_owned).collect()
}

impl Model<'_> {
    fn errors(&self) -> usize {
        self.branches.len() - self.with_result().count()
    }

    fn with_result(&self) -> impl Iterator<Item = &Branch> {
        let branches = self.branches.iter().copied();
        branches.filter(|branch| branch.outcome != BranchOutcome::InfraError)
    }

    fn row(&self, is_ambiguous: bool, is_checked: bool, has_errors: bool) -> Vec<String> {
        let name = match is_ambiguous {
            true => format!("{}:{}", self.provider, self.name),
            false => self.name.clone(),
        };
        let wanted = match is_checked {
            true => BranchOutcome::Passed,
            false => BranchOutcome::Ended,
        };
        let good = self.with_result().filter(|branch| branch.outcome == wanted);
        let mut row = vec![
            eval::one_line(&name),
            format!("{}/{}", good.count(), self.with_result().count()),
        ];
        if has_errors {
            row.push(self.errors().to_string());
        }
        let number = |of: fn(&Branch) -> Option<f64>| median(self.with_result().map(of));
        let whole = |of| shown(number(of), rounded);
        row.extend([
            whole(|branch| Some(branch.rounds as f64)),
            whole(|branch| Some(branch.tokens.input as f64)),
            whole(|branch| Some(branch.tokens.cached as f64)),
            whole(|branch| Some(branch.tokens.output as f64)),
            shown(number(|branch| branch.cost_usd), |cost| {
                format!("${cost:.4}")
            }),
            shown(number(|branch| Some(branch.wall_ms as f64)), |ms| {
                eval::duration(Duration::try_from_secs_f64(ms / 1e3).unwrap_or_default())
            }),
            self.diff(),
        ]);
        row
    }

    fn diff(&self) -> String {
        let diffs = || self.with_result().filter_map(|branch| branch.diff);
        let files = median(diffs().map(|diff| Some(diff.files as f64)));
        let added = median(diffs().map(|diff| Some(diff.added as f64)));
        let removed = median(diffs().map(|diff| Some(diff.removed as f64)));
        match (files, added, removed) {
            (Some(files), Some(added), Some(removed)) => {
                let unit = if files == 1.0 { "file" } else { "files" };
                let (added, removed) = (rounded(added), rounded(removed));
                format!("{} {unit}, +{added} −{removed}", rounded(files))
            }
            _ => "-".to_owned(),
        }
    }
}

/// The middle value, or the mean of the two in the middle; none where one is unknown.
fn median(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect::<Option<_>>()?;
    values.sort_by(f64::total_cmp);
    let upper = values.get(values.len() / 2)?;
    let lower = values.get(values.len().saturating_sub(1) / 2)?;
    Some(f64::midpoint(*lower, *upper))
}

/// Whole, or with the half that two whole numbers have between them.
fn rounded(value: f64) -> String {
    match value.fract() == 0.0 {
        true => format!("{value:.0}"),
        false => format!("{value:.1}"),
    }
}

fn shown(value: Option<f64>, how: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), how)
}

/// Columns under each other; the first and the last begin left, the others end right.
fn laid_out(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|c| width(c).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(column, (cell, width))| match column {
            0 => format!("{cell:<width$}"),
            _ if column + 1 == columns => cell.clone(),
            _ => format!("{cell:>width$}"),
        });
        text += &cells.collect::<Vec<_>>().join("  ");
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use hermitcrab_host::eval::{Changes, Tokens};

    use super::*;

    fn branch(model: &str, trial: u32, outcome: BranchOutcome) -> Branch {
        Branch {
            provider: "anthropic".to_owned(),
            model: model.to_owned(),
            trial,
            outcome,
            passed: None,
            rewards: None,
            reason: None,
            rounds: u64::from(trial),
            tokens: Tokens {
                input: 1_000,
                ..Tokens::default()
            },
            cost_usd: (model == "a").then_some(0.5),
            wall_ms: 1_500,
            model_ms: 0,
            tool_ms: 0,
            check_ms: 0,
            diff: Some(Changes {
                files: 1,
                added: 2,
                removed: 3,
            }),
            dir: None,
        }
    }

    #[test]
    fn medians_by_model() {
        use BranchOutcome::{Failed, InfraError, Passed};
        let branches = [
            branch("a", 1, Passed),
            branch("a", 2, Failed),
            branch("a", 9, InfraError),
            branch("long-name", 1, InfraError),
            branch("c", 1, Passed),
        ];
        let expected = "\
MODEL      PASSED  ERRORS  ROUNDS  READ  CACHED  WRITTEN     COST   TIME  DIFF
a             1/2       1     1.5  1000       0        0  $0.5000  1.5 s  1 file, +2 −3
long-name     0/0       1       -     -       -        -        -      -  -
c             1/1       0       1  1000       0        0        -  1.5 s  1 file, +2 −3
medians over the branches of a model
";
        assert_eq!(of(&branches, true), expected);
    }

    #[test]
    fn namesakes_have_their_provider() {
        let mut other = branch("m", 1, BranchOutcome::Ended);
        other.provider = "chat".to_owned();
        let text = of(&[branch("m", 1, BranchOutcome::Limit), other], false);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("MODEL        ENDED  ROUNDS"), "{text}");
        assert!(lines[1].starts_with("anthropic:m    0/1"), "{text}");
        assert!(lines[2].starts_with("chat:m         1/1"), "{text}");
    }
}
