//! The command that a client starts: how it is written, and how ours is told from others.

use crate::hook::{HookClient, HookEvent};

/// How a client starts Tribunal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// By its name.
    Named,
    /// By its path, if its name would find another program or none.
    At(String),
    /// By its name, if it is installed: for files that are shared with users who may not have it.
    IfThere,
}

const NAME: &str = "tribunal";

impl Program {
    pub fn command(&self, client: HookClient, event: HookEvent) -> String {
        let call = format!("hook {} --client {}", event.word(), client.word());
        match self {
            Program::Named => format!("{NAME} {call}"),
            Program::At(path) => format!("{} {call}", quoted(path)),
            // Without the program the hook is silent, and no session is held.
            Program::IfThere => {
                format!("command -v {NAME} >/dev/null 2>&1 && exec {NAME} {call} || true")
            }
        }
    }
}

/// Who wrote a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    Others,
    /// It is as we write it, possibly with another path.
    Ours(HookEvent),
    /// It starts our hook, but it was edited.
    Changed,
}

pub(super) fn whose(command: &str, client: HookClient) -> Whose {
    let calls = |event: &HookEvent| calls(command, *event);
    let Some(event) = HookEvent::ALL.into_iter().find(calls) else { return Whose::Others };
    // The short form without a client counts as ours, too.
    let full = format!(" hook {} --client {}", event.word(), client.word());
    let short = format!(" hook {}", event.word());
    let word = command.strip_suffix(&full).or_else(|| command.strip_suffix(&short));
    match command == Program::IfThere.command(client, event) || word.is_some_and(is_one_word) {
        true => Whose::Ours(event),
        false => Whose::Changed,
    }
}

/// Whether a command contains `… tribunal hook EVENT …` with any path. A program of another name is ours if it is
/// told the client.
fn calls(command: &str, event: HookEvent) -> bool {
    let call = format!(" hook {}", event.word());
    command.match_indices(&call).any(|(at, _)| {
        // `hook stop` must not be found in `hook stopwatch` or `hook stop-all`.
        let ends = |rest: &&str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-');
        let (before, behind) = (command.get(..at), command.get(at + call.len()..).filter(ends));
        let is_told = |behind: &str| behind.starts_with(" --client ");
        before.zip(behind).is_some_and(|(before, behind)| ends_in_our_name(before) || is_told(behind))
    })
}

/// Whether a text ends with our name: `tribunal`, `/a path/tribunal'`, `"…/tribunal-1.2"`.
fn ends_in_our_name(before: &str) -> bool {
    let word = before.trim_end().trim_end_matches(['\'', '"']);
    let name = word.rsplit(['/', ' ', '\t', '\'', '"', '(', ';', '&', '|', '=']).next().unwrap_or_default();
    name == NAME || name.strip_prefix(NAME).is_some_and(|rest| rest.starts_with(['-', '.']))
}

/// Whether the shell takes this for exactly one word.
fn is_one_word(word: &str) -> bool {
    let plain = |word: &str| !word.is_empty() && word.chars().all(is_plain);
    let inside = word.strip_prefix('\'').and_then(|word| word.strip_suffix('\''));
    // Inside single quotes only the quote itself is special, and `'\''` is how we write it.
    plain(word) || inside.is_some_and(|inside| !inside.replace("'\\''", "").contains('\''))
}

fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || "/._-+=:@%".contains(c)
}

fn quoted(word: &str) -> String {
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_string(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hook::client::hook_client;

    #[test]
    fn our_commands_are_known_whatever_the_path() {
        let claude = hook_client("claude-code");
        for event in HookEvent::ALL {
            for program in [
                Program::Named,
                Program::IfThere,
                Program::At("/usr/local/bin/tribunal".into()),
                Program::At("/opt/somebody's things/tribunal".into()),
                Program::At("/opt/tribunal-1.2".into()),
                Program::At("/opt/court".into()),
            ] {
                let command = program.command(claude, event);
                assert_eq!(whose(&command, claude), Whose::Ours(event), "{command}");
            }
        }
        assert_eq!(whose("tribunal hook stop", claude), Whose::Ours(HookEvent::Stop));
    }

    #[test]
    fn what_others_run_is_theirs_and_what_was_changed_is_noticed() {
        for (command, expected) in [
            ("", Whose::Others),
            ("npm test", Whose::Others),
            ("my-tribunal hook stop", Whose::Others),
            ("tribunal review plan.md", Whose::Others),
            ("tribunal hook stopwatch", Whose::Others),
            ("git hook stop", Whose::Others),
            ("tribunal hook stop --client codex", Whose::Changed),
            ("tribunal hook stop --client claude-code 2>>hook.log", Whose::Changed),
            ("DEBUG=1 tribunal hook stop", Whose::Changed),
            ("sleep 1; /opt/tribunal hook stop --client claude-code", Whose::Changed),
            ("cd \"$CLAUDE_PROJECT_DIR\" && tribunal hook stop", Whose::Changed),
            ("'/a b/tribunal' hook stop && echo 'x'", Whose::Changed),
        ] {
            assert_eq!(whose(command, hook_client("claude-code")), expected, "{command}");
        }
    }
}
