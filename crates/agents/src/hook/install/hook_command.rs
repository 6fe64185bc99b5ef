//! The command that a client starts: how it is written, and how ours is told from others.

use crate::hook::{HookClient, HookEvent};
use tribunal_engine::text::{is_plain_shell_word, shell_quote};

/// How a client starts Tribunal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookProgram {
    /// By its name.
    ByName,
    /// By its path, if its name would find another program or none.
    ByPath(String),
    /// By its name, if it is installed: for files that are shared with users who may not have it.
    IfInstalled,
}

const PROGRAM_NAME: &str = "tribunal";

impl HookProgram {
    pub fn command_line(&self, hook_client: HookClient, hook_event: HookEvent) -> String {
        let hook_call = format!("hook {} --client {}", hook_event.name(), hook_client.client_id());
        match self {
            HookProgram::ByName => format!("{PROGRAM_NAME} {hook_call}"),
            HookProgram::ByPath(program_path) => format!("{} {hook_call}", shell_quote(program_path)),
            // Without the program the hook is silent, and no session is held.
            HookProgram::IfInstalled => {
                format!("command -v {PROGRAM_NAME} >/dev/null 2>&1 && exec {PROGRAM_NAME} {hook_call} || true")
            }
        }
    }
}

impl HookProgram {
    /// Reads back how a command of ours starts Tribunal. `None` for a command that we did not write.
    pub(super) fn from_command(
        command_text: &str,
        hook_client: HookClient,
        hook_event: HookEvent,
    ) -> Option<HookProgram> {
        if command_text == HookProgram::IfInstalled.command_line(hook_client, hook_event) {
            return Some(HookProgram::IfInstalled);
        }
        let short_suffix = format!(" hook {}", hook_event.name());
        let full_suffix = format!("{short_suffix} --client {}", hook_client.client_id());
        let program_word =
            command_text.strip_suffix(&full_suffix).or_else(|| command_text.strip_suffix(&short_suffix))?;
        let quoted_text = program_word.strip_prefix('\'').and_then(|after_quote| after_quote.strip_suffix('\''));
        Some(match quoted_text {
            Some(quoted_text) => HookProgram::ByPath(quoted_text.replace("'\\''", "'")),
            None if program_word == PROGRAM_NAME => HookProgram::ByName,
            None => HookProgram::ByPath(program_word.to_string()),
        })
    }
}

/// Who wrote a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandOwner {
    Foreign,
    /// It is as we write it, possibly with another path.
    Ours(HookEvent),
    /// It starts our hook, but it was edited.
    Changed,
}

pub(super) fn find_command_owner(command_text: &str, hook_client: HookClient) -> CommandOwner {
    let is_called = |hook_event: &HookEvent| calls_hook(command_text, *hook_event);
    let Some(hook_event) = HookEvent::ALL.into_iter().find(is_called) else { return CommandOwner::Foreign };
    // The short form without a client counts as ours, too.
    let full_suffix = format!(" hook {} --client {}", hook_event.name(), hook_client.client_id());
    let short_suffix = format!(" hook {}", hook_event.name());
    let program_word = command_text.strip_suffix(&full_suffix).or_else(|| command_text.strip_suffix(&short_suffix));
    match command_text == HookProgram::IfInstalled.command_line(hook_client, hook_event)
        || program_word.is_some_and(is_single_word)
    {
        true => CommandOwner::Ours(hook_event),
        false => CommandOwner::Changed,
    }
}

/// Whether a command contains `… tribunal hook EVENT …` with any path. A program of another name is ours if it is
/// told the client.
fn calls_hook(command_text: &str, hook_event: HookEvent) -> bool {
    let hook_call = format!(" hook {}", hook_event.name());
    command_text.match_indices(&hook_call).any(|(call_start, _)| {
        // `hook stop` must not be found in `hook stopwatch` or `hook stop-all`.
        let is_word_end = |following_text: &&str| {
            !following_text.starts_with(|character: char| character.is_ascii_alphanumeric() || character == '-')
        };
        let (text_before, text_after) =
            (command_text.get(..call_start), command_text.get(call_start + hook_call.len()..).filter(is_word_end));
        let names_client = |text_after: &str| text_after.starts_with(" --client ");
        text_before
            .zip(text_after)
            .is_some_and(|(text_before, text_after)| ends_with_program_name(text_before) || names_client(text_after))
    })
}

/// Whether a text ends with our name: `tribunal`, `/a path/tribunal'`, `"…/tribunal-1.2"`.
fn ends_with_program_name(text_before: &str) -> bool {
    let last_word = text_before.trim_end().trim_end_matches(['\'', '"']);
    let program_name =
        last_word.rsplit(['/', ' ', '\t', '\'', '"', '(', ';', '&', '|', '=']).next().unwrap_or_default();
    program_name == PROGRAM_NAME
        || program_name.strip_prefix(PROGRAM_NAME).is_some_and(|name_suffix| name_suffix.starts_with(['-', '.']))
}

/// Whether the shell takes this for exactly one word.
fn is_single_word(shell_word: &str) -> bool {
    let quoted_text = shell_word.strip_prefix('\'').and_then(|after_quote| after_quote.strip_suffix('\''));
    // Inside single quotes only the quote itself is special, and `'\''` is how we write it.
    is_plain_shell_word(shell_word)
        || quoted_text.is_some_and(|quoted_text| !quoted_text.replace("'\\''", "").contains('\''))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hook::client::test_hook_client;

    #[test]
    fn own_commands_are_recognized_with_any_path() {
        let claude_client = test_hook_client("claude-code");
        for hook_event in HookEvent::ALL {
            for hook_program in [
                HookProgram::ByName,
                HookProgram::IfInstalled,
                HookProgram::ByPath("/usr/local/bin/tribunal".into()),
                HookProgram::ByPath("/opt/user's things/tribunal".into()),
                HookProgram::ByPath("/opt/tribunal-1.2".into()),
                HookProgram::ByPath("/opt/court".into()),
            ] {
                let command_text = hook_program.command_line(claude_client, hook_event);
                assert_eq!(
                    find_command_owner(&command_text, claude_client),
                    CommandOwner::Ours(hook_event),
                    "{command_text}"
                );
                assert_eq!(
                    HookProgram::from_command(&command_text, claude_client, hook_event),
                    Some(hook_program),
                    "{command_text}"
                );
            }
        }
        assert_eq!(find_command_owner("tribunal hook stop", claude_client), CommandOwner::Ours(HookEvent::Stop));
    }

    #[test]
    fn foreign_commands_are_foreign_and_changed_ones_are_noticed() {
        for (command_text, expected_owner) in [
            ("", CommandOwner::Foreign),
            ("npm test", CommandOwner::Foreign),
            ("my-tribunal hook stop", CommandOwner::Foreign),
            ("tribunal review plan.md", CommandOwner::Foreign),
            ("tribunal hook stopwatch", CommandOwner::Foreign),
            ("git hook stop", CommandOwner::Foreign),
            ("tribunal hook stop --client codex", CommandOwner::Changed),
            ("tribunal hook stop --client claude-code 2>>hook.log", CommandOwner::Changed),
            ("DEBUG=1 tribunal hook stop", CommandOwner::Changed),
            ("sleep 1; /opt/tribunal hook stop --client claude-code", CommandOwner::Changed),
            ("cd \"$CLAUDE_PROJECT_DIR\" && tribunal hook stop", CommandOwner::Changed),
            ("'/a b/tribunal' hook stop && echo 'x'", CommandOwner::Changed),
        ] {
            assert_eq!(
                find_command_owner(command_text, test_hook_client("claude-code")),
                expected_owner,
                "{command_text}"
            );
        }
    }
}
