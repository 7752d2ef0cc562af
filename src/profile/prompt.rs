//! The system prompt: layers put together once per session (spec 6.1, 6.3).
//!
//! Nothing in it changes while the session lives, or the provider's prompt
//! cache would be lost; so the date is the date of the session's start.

use chrono::{DateTime, FixedOffset, Utc};

/// What the environment block says (spec 6.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvironmentFacts<'a> {
    /// Absolute working directory.
    pub working_directory: &'a str,
    /// Branch or commit that is checked out; absent outside a git repository.
    pub git_branch: Option<&'a str>,
    /// `darwin`, `linux`, `windows` or `wasm`.
    pub platform: &'a str,
    /// Version of the operating system.
    pub os_version: &'a str,
    /// Start of the session, ms since 1970-01-01 UTC.
    pub now_ms: u64,
    /// Minutes east of UTC of the user's clock.
    pub utc_offset_minutes: i32,
    /// Name of the model for people.
    pub model: &'a str,
    /// When the model's knowledge ends, if known.
    pub knowledge_cutoff: Option<&'a str>,
}

/// Base instructions, then the environment block, then the agent's part among
/// several, then the user's instructions.
pub fn system_prompt(
    base: &str,
    facts: &EnvironmentFacts<'_>,
    role: Option<&str>,
    user: Option<&str>,
) -> String {
    let mut prompt = format!("{}\n\n{}", base.trim_end(), environment_block(facts));
    if let Some(role) = role {
        prompt.push_str("\n\n");
        prompt.push_str(role.trim_end());
    }
    if let Some(user) = user.map(str::trim).filter(|user| !user.is_empty()) {
        prompt.push_str("\n\n# User instructions\n\n");
        prompt.push_str(user);
    }
    prompt
}

/// The block of spec 6.3.
pub fn environment_block(facts: &EnvironmentFacts<'_>) -> String {
    let mut lines = vec![
        "<environment>".to_owned(),
        format!("Working directory: {}", facts.working_directory),
        format!("Is git repository: {}", facts.git_branch.is_some()),
    ];
    if let Some(branch) = facts.git_branch {
        lines.push(format!("Git branch: {branch}"));
    }
    lines.push(format!("Platform: {}", facts.platform));
    if !facts.os_version.is_empty() {
        lines.push(format!("OS version: {}", facts.os_version));
    }
    lines.push(format!(
        "Today's date: {}",
        date(facts.now_ms, facts.utc_offset_minutes)
    ));
    lines.push(format!("Model: {}", facts.model));
    if let Some(cutoff) = facts.knowledge_cutoff {
        lines.push(format!("Knowledge cutoff: {cutoff}"));
    }
    lines.push("</environment>".to_owned());
    lines.join("\n")
}

/// What `.git/HEAD` says is checked out: a branch name, or a commit's first
/// twelve digits.
pub fn git_branch(head: &str) -> Option<String> {
    let head = head.trim();
    if let Some(name) = head.strip_prefix("ref: refs/heads/") {
        return Some(name.to_owned());
    }
    let is_commit = head.len() >= 40 && head.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_commit.then(|| format!("{} (detached)", &head[..12]))
}

fn date(now_ms: u64, utc_offset_minutes: i32) -> String {
    let utc = i64::try_from(now_ms)
        .ok()
        .and_then(DateTime::<Utc>::from_timestamp_millis)
        .unwrap_or_default();
    let offset = utc_offset_minutes
        .checked_mul(60)
        .and_then(FixedOffset::east_opt);
    match offset {
        Some(offset) => utc.with_timezone(&offset).format("%Y-%m-%d").to_string(),
        None => utc.format("%Y-%m-%d").to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{EnvironmentFacts, environment_block, git_branch, system_prompt};

    fn facts() -> EnvironmentFacts<'static> {
        EnvironmentFacts {
            working_directory: "/work",
            git_branch: Some("main"),
            platform: "linux",
            os_version: "6.1",
            // 2026-11-21T23:30:00Z
            now_ms: 1_795_303_800_000,
            utc_offset_minutes: 60,
            model: "Model",
            knowledge_cutoff: Some("2026-01"),
        }
    }

    #[test]
    fn the_block_follows_the_spec_and_the_users_date() {
        assert_eq!(
            environment_block(&facts()),
            "<environment>\nWorking directory: /work\nIs git repository: true\n\
             Git branch: main\nPlatform: linux\nOS version: 6.1\n\
             Today's date: 2026-11-22\nModel: Model\nKnowledge cutoff: 2026-01\n</environment>"
        );
    }

    #[test]
    fn outside_a_repository_no_branch_is_named() {
        let facts = EnvironmentFacts {
            git_branch: None,
            knowledge_cutoff: None,
            ..facts()
        };
        let block = environment_block(&facts);
        assert!(block.contains("Is git repository: false\nPlatform: linux"));
        assert!(!block.contains("cutoff"));
    }

    #[test]
    fn user_instructions_come_last() {
        let prompt = system_prompt("Base.\n", &facts(), None, Some(" Be brief. "));
        assert!(prompt.starts_with("Base.\n\n<environment>"));
        assert!(prompt.ends_with("</environment>\n\n# User instructions\n\nBe brief."));
    }

    #[test]
    fn head_files() {
        let commit = "0123456789abcdef0123456789abcdef01234567";
        let cases = [
            ("ref: refs/heads/feature/x\n", Some("feature/x".to_owned())),
            (commit, Some("0123456789ab (detached)".to_owned())),
            ("garbage", None),
            ("", None),
        ];
        for (head, expected) in cases {
            assert_eq!(git_branch(head), expected, "{head:?}");
        }
    }
}
