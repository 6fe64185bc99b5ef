//! Notices to the user who is not at the screen.

use alloc::string::String;

use crate::development::{checks::CommandLine, shell_words::split_shell_line};
use tribunal_json::{Deserialize, Serialize, schemars};

use tribunal_engine::fault::Fault;

/// Runs the user's notification command, if one is configured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NotifyUser {
    /// One line.
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum NotifyOutcome {
    Notified,
    Failed {
        #[serde(flatten)]
        fault: Fault,
    },
}

/// Programs that run nothing of the directory in which they are started. What else a command starts may be, or may read, a file of the
/// project: an interpreter looks for modules there, and a task runner for its tasks.
const USER_PROGRAMS: [&str; 34] = [
    "echo",
    "printf",
    "true",
    ":",
    "test",
    "[",
    "cd",
    "export",
    "sleep",
    "date",
    "hostname",
    "whoami",
    "cat",
    "tee",
    "tr",
    "head",
    "tail",
    "cut",
    "grep",
    "jq",
    "tput",
    "logger",
    "wall",
    "notify-send",
    "terminal-notifier",
    "osascript",
    "say",
    "paplay",
    "aplay",
    "curl",
    "ntfy",
    "mail",
    "mailx",
    "sendmail",
];

impl CommandLine {
    /// Whether the command starts only programs that are the user's own, so that no file of the project can become a part of it. What
    /// cannot be told counts as a file of the project.
    pub fn runs_only_user_programs(&self, project_root: &str) -> bool {
        let simple_commands = match self {
            CommandLine::Argv(words) => alloc::vec![words.clone()],
            CommandLine::Shell(line) => split_shell_line(line),
        };
        simple_commands.iter().filter_map(|words| words.first()).all(|program| {
            let is_outside =
                program.starts_with('/') && !program.starts_with(project_root) && !program.contains("/../");
            is_outside && !is_interpreter(program) || USER_PROGRAMS.contains(&program.as_str())
        })
    }
}

/// Whether an absolute path names an interpreter or a task runner of the system: what it runs may be in the project.
fn is_interpreter(program: &str) -> bool {
    let system_dirs = ["/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/", "/opt/", "/snap/", "/nix/"];
    system_dirs.iter().any(|directory| program.starts_with(directory))
        && !program.rsplit('/').next().is_some_and(|name| USER_PROGRAMS.contains(&name))
}

#[cfg(test)]
mod tests {
    use alloc::{string::ToString, vec::Vec};

    use super::*;

    fn is_users(line: &str) -> bool {
        CommandLine::from_shell_line(line).runs_only_user_programs("/users/me/project")
    }

    #[test]
    fn commands_without_files_of_the_project_are_the_users_own() {
        for line in [
            "notify-send Tribunal \"$1\"",
            "echo \"$1\" >> ~/notices.log",
            "curl -s -d \"$1\" https://ntfy.example/me",
            "/users/me/bin/tell-me",
            "/usr/bin/notify-send \"$1\"; printf '\\a'",
        ] {
            assert!(is_users(line), "{line}");
        }
        let words: Vec<String> = ["notify-send", "a ; sh x.sh"].iter().map(ToString::to_string).collect();
        assert!(CommandLine::Argv(words).runs_only_user_programs("/users/me/project"));
    }

    #[test]
    fn what_may_run_a_file_of_the_project_is_not() {
        for line in [
            "sh notify.sh",
            "./notify.sh",
            "make notify",
            "python3 -c 'import smtplib'",
            "echo \"$1\" | sh",
            "cat notify.sh | bash",
            "/bin/sh tools/notify.sh",
            "/users/me/project/notify.sh",
            "/users/me/bin/../project/notify.sh",
            "$NOTIFY",
            "echo $(./notify.sh)",
            "true && npm run notify",
            "X=1 ./notify.sh",
        ] {
            assert!(!is_users(line), "{line}");
        }
    }
}
