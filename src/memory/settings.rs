//! What a host says about a sandbox that it opens: every field may be left out.

use serde::{Deserialize, Serialize};

use super::MemoryOptions;

/// Settings of a sandbox, as every face reads them; what is left out is as in
/// [`MemoryOptions`], a limit as in [`super::MemoryLimits`]. Unknown names are
/// errors.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemorySettings {
    working_directory: Option<String>,
    utc_offset_minutes: Option<i32>,
    programs: Vec<String>,
    limits: Limits,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Limits {
    total_bytes: Option<u64>,
    file_bytes: Option<u64>,
    entries: Option<u64>,
    path_bytes: Option<usize>,
    output_bytes: Option<usize>,
    work_bound: Option<u64>,
    idle_shells: Option<usize>,
}

impl MemorySettings {
    /// These, with what `changes` says; its programs are all that there are.
    pub(crate) fn changed(self, changes: Self) -> Self {
        let (limits, new) = (self.limits, changes.limits);
        Self {
            working_directory: changes.working_directory.or(self.working_directory),
            utc_offset_minutes: changes.utc_offset_minutes.or(self.utc_offset_minutes),
            programs: changes.programs,
            limits: Limits {
                total_bytes: new.total_bytes.or(limits.total_bytes),
                file_bytes: new.file_bytes.or(limits.file_bytes),
                entries: new.entries.or(limits.entries),
                path_bytes: new.path_bytes.or(limits.path_bytes),
                output_bytes: new.output_bytes.or(limits.output_bytes),
                work_bound: new.work_bound.or(limits.work_bound),
                idle_shells: new.idle_shells.or(limits.idle_shells),
            },
        }
    }

    /// Names of the programs that are lent.
    pub(crate) fn programs(&self) -> &[String] {
        &self.programs
    }

    /// The options of a sandbox with these settings and `seed`.
    pub fn into_options(self, seed: [u8; 32]) -> MemoryOptions {
        fn set<T>(place: &mut T, value: Option<T>) {
            if let Some(value) = value {
                *place = value;
            }
        }
        let mut options = MemoryOptions {
            seed,
            programs: self.programs,
            ..MemoryOptions::default()
        };
        set(&mut options.working_directory, self.working_directory);
        set(&mut options.utc_offset_minutes, self.utc_offset_minutes);
        let limits = &mut options.limits;
        set(&mut limits.tree.total_bytes, self.limits.total_bytes);
        set(&mut limits.tree.file_bytes, self.limits.file_bytes);
        set(&mut limits.tree.entries, self.limits.entries);
        set(&mut limits.tree.path_bytes, self.limits.path_bytes);
        set(&mut limits.output_bytes, self.limits.output_bytes);
        set(&mut limits.work_bound, self.limits.work_bound);
        set(&mut limits.idle_shells, self.limits.idle_shells);
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{MemoryLimits, TreeLimits};

    fn read(json: &str) -> Result<MemoryOptions, String> {
        serde_json::from_str::<MemorySettings>(json)
            .map(|settings| settings.into_options([7; 32]))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_said_means_the_defaults() {
        let options = read("{}").unwrap();
        assert_eq!(options.limits, MemoryLimits::default());
        assert_eq!(options.working_directory, "/workspace");
        assert_eq!(options.seed, [7; 32]);
    }

    #[test]
    fn every_setting_arrives_at_its_place() {
        let options = read(
            r#"{"working_directory": "/w", "utc_offset_minutes": -90, "programs": ["p"],
                "limits": {"total_bytes": 1, "file_bytes": 2, "entries": 3, "path_bytes": 4,
                           "output_bytes": 5, "work_bound": 6, "idle_shells": 7}}"#,
        )
        .unwrap();
        assert_eq!(
            (
                options.working_directory.as_str(),
                options.utc_offset_minutes,
                options.programs,
                options.limits,
            ),
            (
                "/w",
                -90,
                vec!["p".to_owned()],
                MemoryLimits {
                    tree: TreeLimits {
                        total_bytes: 1,
                        file_bytes: 2,
                        entries: 3,
                        path_bytes: 4,
                    },
                    output_bytes: 5,
                    work_bound: 6,
                    idle_shells: 7,
                },
            )
        );
    }

    #[test]
    fn unknown_names_are_errors() {
        for json in [r#"{"limitz": {}}"#, r#"{"limits": {"bytes": 1}}"#] {
            assert!(read(json).unwrap_err().contains("unknown field"), "{json}");
        }
    }
}
