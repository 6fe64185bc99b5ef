//! Which files of the project a check runs: its script, or the file in which a tool looks up what to do.
//!
//! An agent that changes such a file decides itself whether the check passes. What a command runs cannot be told in general, so
//! this covers what users write: a script by its path, an interpreter with a script, and tools that run a task by its name.

use alloc::{
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::development::checks::CommandLine;

/// Programs that run the file which is their first argument.
const INTERPRETERS: [&str; 18] = [
    "sh", "bash", "dash", "zsh", "ksh", "fish", ".", "source", "python", "python3", "node", "ruby", "perl", "php",
    "lua", "tsx", "ts-node", "Rscript",
];
/// Those whose code is a line for a shell.
const SHELLS: [&str; 8] = ["sh", "bash", "dash", "zsh", "ksh", "fish", ".", "source"];
/// Words before a command that are not the command.
const PREFIXES: [&str; 17] = [
    "env", "exec", "time", "nice", "nohup", "command", "!", "if", "then", "else", "elif", "do", "while", "until", "{",
    "xvfb-run", "npx",
];
/// Tools, and the files that say what a task of theirs does.
const TASK_FILES: [(&str, &[&str]); 9] = [
    ("make", &["Makefile", "makefile", "GNUmakefile"]),
    ("gmake", &["Makefile", "makefile", "GNUmakefile"]),
    ("just", &["justfile", "Justfile", ".justfile"]),
    ("rake", &["Rakefile"]),
    ("task", &["Taskfile.yml", "Taskfile.yaml"]),
    ("tox", &["tox.ini"]),
    ("nox", &["noxfile.py"]),
    ("invoke", &["tasks.py"]),
    ("pre-commit", &[".pre-commit-config.yaml"]),
];
/// Tools that run what `scripts` of `package.json` says.
const PACKAGE_RUNNERS: [&str; 4] = ["npm", "pnpm", "yarn", "bun"];

/// A file of the project that a check runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckScript {
    /// The end of its path: a command may change the directory first.
    pub path_end: String,
    pub part: ScriptPart,
}

/// What of a file a check runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptPart {
    WholeFile,
    /// Only `scripts` of a `package.json`: dependencies change all the time.
    PackageScripts,
}

/// A changed file, and the check that runs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ChangedScript {
    pub path: String,
    pub command: CommandLine,
}

impl CheckScript {
    pub fn matches_path(&self, path: &str) -> bool {
        path.strip_suffix(self.path_end.as_str()).is_some_and(|start| start.is_empty() || start.ends_with('/'))
    }
}

impl CommandLine {
    /// Lists the files that the command runs, as far as they can be told from its text.
    pub fn list_scripts(&self) -> Vec<CheckScript> {
        let simple_commands: Vec<Vec<String>> = match self {
            CommandLine::Argv(words) => vec![words.clone()],
            CommandLine::Shell(line) => split_shell_line(line),
        };
        simple_commands.iter().flat_map(|words| list_scripts_of(words)).collect()
    }
}

/// Splits a line for a shell into simple commands. Quotes are ignored, so what is quoted counts as well.
pub(super) fn split_shell_line(line: &str) -> Vec<Vec<String>> {
    let split_words = |part: &str| -> Vec<String> {
        // An input redirection stands for itself, even without spaces.
        let spaced_part = part.replace('<', " < ");
        spaced_part.split_whitespace().map(|word| word.trim_matches(['"', '\'', '$']).to_string()).collect()
    };
    line.split(['\n', ';', '&', '|', '(', ')', '`']).map(split_words).collect()
}

/// Finds which of these files a check runs. The content of the files is not looked at.
pub fn find_changed_scripts<'c>(
    commands: impl Iterator<Item = &'c CommandLine>,
    changed_paths: &[String],
) -> Vec<ChangedScript> {
    let mut changed_scripts = Vec::new();
    for command in commands {
        let scripts = command.list_scripts();
        let is_run = |path: &&String| scripts.iter().any(|script| script.matches_path(path));
        let changed_by_it = changed_paths.iter().filter(is_run);
        changed_scripts
            .extend(changed_by_it.map(|path| ChangedScript { path: path.clone(), command: command.clone() }));
    }
    changed_scripts
}

/// Says which checks are affected: "check.sh, which the check `sh check.sh` runs".
pub fn describe_changed_scripts(changed_scripts: &[ChangedScript]) -> String {
    let described: Vec<String> = changed_scripts
        .iter()
        .map(|ChangedScript { path, command }| format!("{path}, which the check `{command}` runs"))
        .collect();
    described.join("; ")
}

fn list_scripts_of(words: &[String]) -> Vec<CheckScript> {
    let is_assignment = |word: &str| word.split_once('=').is_some_and(|(name, _)| is_variable_name(name));
    let mut words = words.iter().map(String::as_str).skip_while(|word| PREFIXES.contains(word) || is_assignment(word));
    let Some(mut program) = words.next() else { return Vec::new() };
    if program == "timeout" {
        let mut rest =
            words.by_ref().skip_while(|word| word.starts_with('-') || word.starts_with(|c: char| c.is_ascii_digit()));
        let Some(timed_program) = rest.next() else { return Vec::new() };
        program = timed_program;
    }
    let arguments: Vec<&str> = words.collect();
    let program_name = program.rsplit('/').next().unwrap_or(program);
    let whole_file = |path: &str| CheckScript { path_end: normalize_path(path), part: ScriptPart::WholeFile };
    let mut scripts = Vec::new();
    if program.contains('/') && !program.starts_with('/') {
        scripts.push(whole_file(program));
    }
    if INTERPRETERS.contains(&program_name) {
        scripts.extend(list_interpreted_scripts(program_name, &arguments));
    }
    if PACKAGE_RUNNERS.contains(&program_name) {
        scripts.push(CheckScript { path_end: "package.json".to_string(), part: ScriptPart::PackageScripts });
    }
    if let Some((_, task_files)) = TASK_FILES.iter().find(|(tool, _)| *tool == program_name) {
        scripts.extend(task_files.iter().map(|file_name| whole_file(file_name)));
        let named_file = arguments.iter().position(|argument| matches!(*argument, "-f" | "--file" | "-c"));
        scripts
            .extend(named_file.and_then(|position| arguments.get(position + 1)).map(|file_name| whole_file(file_name)));
    }
    scripts
}

/// Lists what an interpreter runs with these arguments.
fn list_interpreted_scripts(interpreter: &str, arguments: &[&str]) -> Vec<CheckScript> {
    let whole_file = |path: &str| CheckScript { path_end: normalize_path(path), part: ScriptPart::WholeFile };
    let list_in_code = |code_words: &[&str]| -> Vec<CheckScript> {
        split_shell_line(&code_words.join(" ")).iter().flat_map(|words| list_scripts_of(words)).collect()
    };
    // `sh < script` reads the script as its input.
    if let Some(position) = arguments.iter().position(|argument| *argument == "<") {
        return arguments.get(position + 1).map(|script| whole_file(script)).into_iter().collect();
    }
    let is_shell = SHELLS.contains(&interpreter);
    let mut remaining_args = arguments.iter();
    while let Some(argument) = remaining_args.next() {
        match *argument {
            // In code of another language nothing looks like a command that runs a script.
            "-c" => return list_in_code(remaining_args.as_slice()),
            "-e" | "--eval" if !is_shell => return Vec::new(),
            "-m" => {
                let module_path = remaining_args.next().map(|module| module.replace('.', "/"));
                let candidates = |path: String| [format!("{path}.py"), format!("{path}/__main__.py")];
                return module_path.into_iter().flat_map(candidates).map(|path| whole_file(&path)).collect();
            }
            // These have a value.
            "-O" | "+O" | "--rcfile" | "--init-file" if is_shell => drop(remaining_args.next()),
            "-r" | "--require" | "-W" | "-X" | "-I" if !is_shell => drop(remaining_args.next()),
            // Letters of shells can be joined: `-ec CODE`, `-euo pipefail`.
            option if is_shell && option.starts_with(['-', '+']) && !option.starts_with("--") => {
                if option.ends_with('c') {
                    return list_in_code(remaining_args.as_slice());
                }
                if option.ends_with('o') {
                    remaining_args.next();
                }
            }
            option if option.starts_with('-') => {}
            script => return vec![whole_file(script)],
        }
    }
    Vec::new()
}

fn is_variable_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Removes what does not name a directory, so that the end of a path can be compared.
fn normalize_path(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | "." | "..")).collect();
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(command: &str, path: &str) -> bool {
        let command = CommandLine::from_shell_line(command);
        !find_changed_scripts([&command].into_iter(), &[path.to_string()]).is_empty()
    }

    #[test]
    fn scripts_are_found_where_users_name_them() {
        for (command, path) in [
            ("./check.sh", "check.sh"),
            ("scripts/check.sh --all", "scripts/check.sh"),
            ("sh check.sh", "check.sh"),
            ("bash -eu scripts/check.sh", "scripts/check.sh"),
            ("cargo build && python3 tools/verify.py src", "tools/verify.py"),
            ("cd web && ./test.sh", "web/test.sh"),
            ("CI=1 timeout -k 5 60 ./check.sh", "check.sh"),
            ("if ./check.sh; then true; fi", "check.sh"),
            ("make check", "Makefile"),
            ("make -C sub -f build.mk check", "sub/build.mk"),
            ("npm test", "package.json"),
            ("cd web && pnpm run lint", "web/package.json"),
            ("\"./check.sh\"", "check.sh"),
            ("(./check.sh)", "check.sh"),
            ("env FOO=1 node test.js", "test.js"),
            ("sh -e check.sh", "check.sh"),
            ("bash -o pipefail check.sh", "check.sh"),
            ("bash -euo pipefail check.sh", "check.sh"),
            ("sh -c \"./check.sh\"", "check.sh"),
            ("bash -ec 'cd web; ./test.sh'", "web/test.sh"),
            ("bash < check.sh", "check.sh"),
            ("sh <check.sh", "check.sh"),
            ("python3 -m tools.verify", "tools/verify.py"),
        ] {
            assert!(changed(command, path), "{command}: {path}");
        }
    }

    #[test]
    fn data_and_other_files_are_not_scripts() {
        for (command, path) in [
            ("grep -q done src/lib.txt", "src/lib.txt"),
            ("test -f done.txt", "done.txt"),
            ("cargo test", "tests/test"),
            ("python3 -m pytest tests/test_a.py", "tests/test_a.py"),
            ("sh -c 'true'", "true"),
            ("node -e check.js", "check.js"),
            ("./check.sh", "recheck.sh"),
            ("/usr/bin/check.sh", "check.sh"),
            ("cat check.sh", "check.sh"),
        ] {
            assert!(!changed(command, path), "{command}: {path}");
        }
    }

    #[test]
    fn code_for_a_shell_is_read_in_a_list_of_words_too() {
        let words = ["bash", "-c", "true && ./check.sh --all"].map(String::from).to_vec();
        assert_eq!(CommandLine::Argv(words).list_scripts()[0].path_end, "check.sh");
    }

    #[test]
    fn a_program_with_arguments_is_read_without_a_shell() {
        let words = ["sh", "my check.sh"].map(String::from).to_vec();
        assert_eq!(CommandLine::Argv(words).list_scripts()[0].path_end, "my check.sh");
    }
}
