//! Recognises commands whose harm cannot be undone.

use alloc::{format, string::ToString};

use crate::{
    git::{self, HarmDescription},
    invocation::{ProgramInvocation, SHELLS},
    paths::LexicalPath,
    shell::{ScriptItem, ShellScript, ShellWord},
    shell_state::{ShellState, WordLocation},
    write_targets,
};

/// Devices that a program may write to without overwriting anything.
const HARMLESS_DEVICES: [&str; 8] = ["null", "stdout", "stderr", "stdin", "tty", "zero", "full", "fd"];

const REMOVES_FOREIGN_FILES: &str = "it removes files outside the project";
const REMOVE_BY_NAME: &str = "Remove files by name, inside the project";

/// Describes the harm of an invocation; `None` means that no known harm comes of it.
pub(crate) fn find_harm(invocation: &ProgramInvocation<'_>, shell_state: &ShellState<'_>) -> Option<HarmDescription> {
    let program = invocation.program.as_str();
    let options = invocation.parse_options();
    let describe = |action: &str, explanation, alternative| {
        Some(HarmDescription { action: format!("`{action}`"), explanation, alternative })
    };
    const LEAVE_TO_USER: &str = "Leave it to the user";
    match program {
        "rm" if options.has_any(&['r', 'R'], &["recursive"]) => {
            options.operands.iter().find_map(|operand| find_removal_harm("rm -r", operand, shell_state))
        }
        "find" if write_targets::is_deleting_find(invocation) => check_find_command(invocation, shell_state),
        // In a temporary repository even `git reset --hard` loses no lasting work.
        "git" if !is_scratch_repository(invocation, shell_state) => git::describe_git_harm(invocation),
        "mkfs" | "mke2fs" | "wipefs" | "mkswap" => describe(program, "it erases a disk", LEAVE_TO_USER),
        _ if program.starts_with("mkfs.") => describe(program, "it erases a disk", LEAVE_TO_USER),
        "chmod" | "chown" | "chgrp" if options.has_any(&['R'], &["recursive"]) => {
            // The first operand is the mode or the owner.
            let mut file_operands = options.operands.iter().skip(1);
            let operand = file_operands.find(|operand| {
                shell_state.locate_word(operand).iter().any(|location| is_outside_project(location, shell_state))
            })?;
            let action = format!("{program} -R {}", crate::clip_text(&operand.to_plain_text()));
            describe(
                &action,
                "it changes the permissions or owner of files outside the project",
                "Name files in the project",
            )
        }
        "shutdown" | "reboot" | "halt" | "poweroff" => describe(program, "it shuts down the machine", LEAVE_TO_USER),
        "init" | "telinit" if matches!(options.operand_texts().first().map(|word| word.as_str()), Some("0" | "6")) => {
            describe(program, "it shuts down the machine", LEAVE_TO_USER)
        }
        "systemctl" => {
            let operand_texts = options.operand_texts();
            let systemctl_verb = operand_texts
                .first()
                .filter(|operand_text| ["poweroff", "reboot", "halt", "kexec"].contains(&operand_text.as_str()))?;
            describe(&format!("systemctl {systemctl_verb}"), "it shuts down the machine", LEAVE_TO_USER)
        }
        "kill" => kills_every_process(invocation).then(|| HarmDescription {
            action: "`kill` with process id -1".to_string(),
            explanation: "it kills every process of the user",
            alternative: "Kill only the process that you started, by its id",
        }),
        // `crontab -r` asks no question and keeps no copy.
        "crontab" if options.has_any(&['r'], &[]) => {
            describe("crontab -r", "it removes all cron jobs of the user", LEAVE_TO_USER)
        }
        _ => None,
    }
}

/// Whether git works on a repository in a temporary directory, which holds no lasting work.
fn is_scratch_repository(invocation: &ProgramInvocation<'_>, shell_state: &ShellState<'_>) -> bool {
    let mut git_state = shell_state.clone();
    // `git -C` changes the directory for this invocation only, so the change goes to a copy of the state.
    if let Some(directory_word) = git::find_directory_option(invocation.args) {
        git_state.change_dir(Some(directory_word));
    }
    git_state.is_in_scratch()
}

/// Describes the harm of removing an operand with everything in it.
fn find_removal_harm(command_name: &str, operand: &ShellWord, shell_state: &ShellState<'_>) -> Option<HarmDescription> {
    let describe = |explanation, alternative| {
        Some(HarmDescription {
            action: format!("`{command_name} {}`", crate::clip_text(&operand.to_plain_text())),
            explanation,
            alternative,
        })
    };
    // `rm` itself refuses these, but the agent should learn why.
    if matches!(operand.0.trim_end_matches('/'), "." | "..") {
        return describe("it removes the directory it runs in", REMOVE_BY_NAME);
    }
    // One harmful expansion is enough: in `for d in a / b` the second value removes everything.
    for expansion in shell_state.expand_word(operand) {
        let location = shell_state.locate_expansion(&expansion);
        let WordLocation::Known(removed_path) = &location else {
            // The leading slash only makes the expansion parseable; what counts is whether it consists of wildcards alone.
            let is_whole_dir = LexicalPath::resolve(&format!("/{expansion}"), None)
                .is_some_and(|rooted_path| rooted_path.matches_whole_dir() || rooted_path.0.is_empty());
            match location {
                WordLocation::Ambiguous => {
                    return describe(
                        "the value of the leading variable is unknown, and if it is empty, everything is removed",
                        "Write the path out",
                    );
                }
                WordLocation::Unknown if is_whole_dir => {
                    return describe("the working directory is unknown", "Write the path out");
                }
                _ => continue,
            }
        };
        // `dir/*` removes as much as `dir`, so both are judged by the directory.
        let is_glob_over_dir = removed_path.matches_whole_dir();
        let removed_dir = if is_glob_over_dir { removed_path.parent() } else { removed_path.clone() };
        let boundaries = shell_state.boundaries;
        let git_dir = boundaries.project_root.join(".git");
        if boundaries.project_root.is_within(&removed_dir) {
            return describe("it removes the whole project or more", REMOVE_BY_NAME);
        }
        if !boundaries.is_in_project(&removed_dir) && !boundaries.is_in_scratch(&removed_dir) {
            return describe(REMOVES_FOREIGN_FILES, REMOVE_BY_NAME);
        }
        // Other files of the repository, such as a stale `index.lock`, may be removed.
        if removed_dir == git_dir
            || removed_dir.is_within(&git_dir.join("objects"))
            || removed_dir.is_within(&git_dir.join("refs"))
        {
            return describe("it removes the git history of the project", REMOVE_BY_NAME);
        }
    }
    None
}

/// Describes the harm of a deleting `find`: one outside the project, or one over the whole project that no test narrows
/// down.
fn check_find_command(invocation: &ProgramInvocation<'_>, shell_state: &ShellState<'_>) -> Option<HarmDescription> {
    const NARROWING_TESTS: [&str; 16] = [
        "-name",
        "-iname",
        "-path",
        "-ipath",
        "-wholename",
        "-regex",
        "-iregex",
        "-newer",
        "-mtime",
        "-mmin",
        "-atime",
        "-ctime",
        "-size",
        "-empty",
        "-user",
        "-perm",
    ];
    let is_narrowed = invocation.args.iter().any(|argument| NARROWING_TESTS.contains(&argument.0.as_str()));
    // Without a start directory GNU `find` begins in the working directory.
    let start_word = invocation.args.iter().find(|argument| !argument.0.starts_with('-'));
    let current_dir = ShellWord(".".to_string());
    let start_word = start_word.unwrap_or(&current_dir);
    let locations = shell_state.locate_word(start_word);
    let is_harmful = locations.iter().any(|location| match location {
        WordLocation::Known(start_path) if shell_state.boundaries.is_in_project(start_path) => {
            !is_narrowed && *start_path == shell_state.boundaries.project_root
        }
        WordLocation::Known(_) => {
            is_outside_project(location, shell_state) && !is_scratch_location(location, shell_state)
        }
        WordLocation::Ambiguous => !is_narrowed,
        _ => false,
    });
    is_harmful.then(|| HarmDescription {
        action: format!("`find {}` with a delete action", crate::clip_text(&start_word.to_plain_text())),
        explanation: "it removes the whole project, or files outside it",
        alternative: "Start in a directory of the project and select the files with -name",
    })
}

/// Whether a location is known and neither in the project nor temporary.
fn is_outside_project(location: &WordLocation, shell_state: &ShellState<'_>) -> bool {
    let boundaries = &shell_state.boundaries;
    matches!(location, WordLocation::Known(path) if !boundaries.is_in_project(path) && !boundaries.is_in_scratch(path))
}

/// Whether a location is known and temporary.
fn is_scratch_location(location: &WordLocation, shell_state: &ShellState<'_>) -> bool {
    matches!(location, WordLocation::Known(path) if shell_state.boundaries.is_in_scratch(path))
}

/// Whether `kill` is sent to every process of the user.
fn kills_every_process(invocation: &ProgramInvocation<'_>) -> bool {
    // The first argument may be the signal: `kill -1 5` sends SIGHUP to process 5.
    let has_signal_option =
        invocation.args.first().is_some_and(|argument| argument.0.starts_with('-') && argument.0 != "--");
    let has_signal_operand = invocation.args.first().is_some_and(|argument| matches!(argument.0.as_str(), "-s" | "-n"));
    invocation
        .args
        .iter()
        .skip(usize::from(has_signal_option) + usize::from(has_signal_operand))
        .any(|argument| argument.0 == "-1")
}

/// Describes the harm of writing to a device, which would overwrite its contents.
pub(crate) fn find_device_harm(written_path: &LexicalPath) -> Option<HarmDescription> {
    // `/dev/shm` and `/dev/pts` are directories: memory and terminals, not disks.
    let [top_dir, device_name, ..] = written_path.0.as_slice() else { return None };
    if top_dir != "dev"
        || HARMLESS_DEVICES.contains(&device_name.as_str())
        || device_name == "shm"
        || device_name == "pts"
    {
        return None;
    }
    Some(HarmDescription {
        action: format!("writing to `/{}`", written_path.0.join("/")),
        explanation: "it overwrites a device",
        alternative: "Write to a file in the project",
    })
}

/// Whether the path is a device that is safe to write to, wherever the write bounds end.
pub(crate) fn is_harmless_device(written_path: &LexicalPath) -> bool {
    matches!(written_path.0.as_slice(), [dev, name, ..] if dev == "dev" && HARMLESS_DEVICES.contains(&name.as_str()))
}

/// Recognises a function that calls itself twice in the background: `:(){ :|:& };:`.
pub(crate) fn find_fork_bomb(script: &ShellScript) -> Option<HarmDescription> {
    let script_calls = || {
        script.items.iter().filter_map(|item| match item {
            ScriptItem::Call(call) => Some(call),
            _ => None,
        })
    };
    // The pattern is a pipeline of one of the script's own functions with itself, put into the background.
    let calls_own_function =
        |word: Option<&ShellWord>| word.is_some_and(|word| script.functions.contains(&word.to_plain_text()));
    let is_fork_bomb = !script.functions.is_empty()
        && script_calls().zip(script_calls().skip(1)).any(|(first_call, second_call)| {
            first_call.pipeline_number == second_call.pipeline_number
                && second_call.is_background
                && calls_own_function(first_call.words.first())
                && first_call.words.first() == second_call.words.first()
        });
    is_fork_bomb.then(|| HarmDescription {
        action: "a fork bomb".to_string(),
        explanation: "it fills the machine with processes",
        alternative: "Leave it out",
    })
}

/// Whether the program fetches something from the network, which a later program might run unread.
pub(crate) fn fetches_from_network(invocation: &ProgramInvocation<'_>) -> bool {
    matches!(invocation.program.as_str(), "curl" | "wget" | "fetch")
}

/// Describes the harm of running a script that was just fetched.
pub(crate) fn unread_script_harm() -> HarmDescription {
    HarmDescription {
        action: "running a downloaded script unread".to_string(),
        explanation: "its content has not been checked",
        alternative: "Save it to a file, read it, then run it if it is safe",
    }
}

/// Whether a shell runs a fetched script directly: `sh -c "$(curl …)"`, `bash <(curl …)`, `eval "$(wget …)"`, `. <(curl …)`.
pub(crate) fn runs_fetched_script(invocation: &ProgramInvocation<'_>) -> bool {
    let is_script_runner =
        SHELLS.contains(&invocation.program.as_str()) || ["eval", ".", "source"].contains(&invocation.program.as_str());
    // The lexer keeps a substitution in its word as a mark and `(COMMANDS)`.
    is_script_runner
        && invocation
            .args
            .iter()
            .any(|argument| argument.0.starts_with("\u{1}(curl ") || argument.0.starts_with("\u{1}(wget "))
}
