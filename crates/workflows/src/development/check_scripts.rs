//! Which files of the project a check runs: its scripts, the file in which a tool looks up what to do, and what test runners read by
//! themselves.
//!
//! An agent that changes such a file decides itself whether the check passes. What a command runs cannot be told in general, so
//! this covers what users write: a script by its path, an interpreter with a script, tools that run a task by its name, and scripts
//! that are named by a pattern, a variable, `xargs` or `find -exec`.

use alloc::{
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};
use core::slice;

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::development::{
    checks::CommandLine,
    runner_files::list_runner_files,
    shell_words::{expand_variables, matches_pattern, skip_prefixes, split_shell_line},
};

/// Programs that run the file which is their first argument.
const INTERPRETERS: [&str; 18] = [
    "sh", "bash", "dash", "zsh", "ksh", "fish", ".", "source", "python", "python3", "node", "ruby", "perl", "php",
    "lua", "tsx", "ts-node", "Rscript",
];
/// Those whose code is a line for a shell.
const SHELLS: [&str; 8] = ["sh", "bash", "dash", "zsh", "ksh", "fish", ".", "source"];
/// How the names of scripts for shells end.
const SHELL_ENDINGS: [&str; 5] = [".sh", ".bash", ".zsh", ".ksh", ".fish"];
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
/// Tools for which a task is done if there is a file of its name.
const FILE_MAKERS: [&str; 2] = ["make", "gmake"];
/// Words that have a tool look in another directory.
const DIRECTORY_WORDS: [&str; 12] = [
    "cd",
    "pushd",
    "-C",
    "--directory",
    "--prefix",
    "--dir",
    "--cwd",
    "-w",
    "--workspace",
    "--workspaces",
    "-r",
    "--filter",
];
/// Tools that run what `scripts` of `package.json` says.
const PACKAGE_RUNNERS: [&str; 4] = ["npm", "pnpm", "yarn", "bun"];

/// A file of the project that a check runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckScript {
    pub form: PathForm,
    /// A path, a name or a pattern.
    pub path: String,
    pub part: ScriptPart,
}

/// How the path of a script is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathForm {
    /// Its end: a command may change the directory first.
    End,
    /// From the root of the repository.
    Root,
    /// Its last names, which may be patterns.
    Named,
    /// The same, but for modules of the product that have such a name.
    Configuration,
    /// A pattern for its end, which tests may have as well.
    Pattern,
    /// A directory above it, in which shells run files.
    Below,
}

/// What of a file a check runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptPart {
    WholeFile,
    /// Only `scripts` of a `package.json`: dependencies change all the time.
    PackageScripts,
    /// That it is there: it takes the place of something else.
    NewFile,
}

/// A changed file, and the check that runs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ChangedScript {
    pub path: String,
    pub command: CommandLine,
}

impl CheckScript {
    pub(super) fn new(form: PathForm, path: &str, part: ScriptPart) -> CheckScript {
        CheckScript { form, path: path.to_string(), part }
    }

    /// A script by the path with which a command names it.
    fn from_word(word: &str) -> CheckScript {
        let path = normalize_path(word);
        let form = if path.contains(['*', '?']) { PathForm::Pattern } else { PathForm::End };
        CheckScript { form, path, part: ScriptPart::WholeFile }
    }

    pub fn matches_path(&self, path: &str) -> bool {
        match self.form {
            // For `make check`, a directory called `check` is as good as a file.
            PathForm::Root if self.part == ScriptPart::NewFile => {
                path.strip_prefix(self.path.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
            PathForm::Root => path == self.path,
            PathForm::End => {
                path.strip_suffix(self.path.as_str()).is_some_and(|start| start.is_empty() || start.ends_with('/'))
            }
            PathForm::Named => matches_end(path, &self.path),
            PathForm::Configuration => matches_end(path, &self.path) && !has_directory(path, &["src"]),
            // A test is a file like those of the product.
            PathForm::Pattern => matches_end(path, &self.path) && !is_test_name(path),
            PathForm::Below => {
                let is_below = self.path.is_empty()
                    || path.starts_with(&format!("{}/", self.path))
                    || path.contains(&format!("/{}/", self.path));
                is_below && SHELL_ENDINGS.iter().any(|ending| path.ends_with(ending)) && !is_test_name(path)
            }
        }
    }
}

/// Whether the last names of a path have the form of a pattern.
fn matches_end(path: &str, pattern: &str) -> bool {
    let (mut names, patterns) = (path.rsplit('/'), pattern.rsplit('/'));
    patterns.into_iter().all(|pattern| names.next().is_some_and(|name| matches_pattern(name, pattern)))
}

/// Whether a file is a test by its name.
pub fn is_test_name(path: &str) -> bool {
    let is_test_word = |word: &str| matches!(word, "test" | "tests" | "spec" | "specs" | "testing" | "e2e");
    let lower_path = path.to_lowercase();
    let has_extension = lower_path.rsplit('/').next().is_some_and(|name| name.contains('.'));
    // Documents about tests are none.
    has_extension
        && !lower_path.ends_with(".md")
        && lower_path.split(|character: char| !character.is_ascii_alphanumeric()).any(is_test_word)
        || path.rsplit('/').next().is_some_and(|name| name.contains("Test.") || name.contains("Tests."))
}

impl CommandLine {
    /// Lists the files that the command runs, as far as they can be told from its text.
    pub fn list_scripts(&self) -> Vec<CheckScript> {
        match self {
            CommandLine::Argv(words) => list_run_scripts(slice::from_ref(words)),
            CommandLine::Shell(line) => list_line_scripts(line),
        }
    }
}

fn list_line_scripts(line: &str) -> Vec<CheckScript> {
    let simple_commands = expand_variables(&split_shell_line(line));
    let mut scripts = list_run_scripts(&simple_commands);
    if simple_commands.iter().any(|words| runs_listed_files(words)) {
        scripts.extend(simple_commands.iter().flat_map(|words| list_named_files(words)));
    }
    scripts
}

/// Lists what simple commands run that belong together.
fn list_run_scripts(simple_commands: &[Vec<String>]) -> Vec<CheckScript> {
    let mut scripts: Vec<CheckScript> = simple_commands.iter().flat_map(|words| list_scripts_of(words)).collect();
    let changes_directory = |word: &String| {
        DIRECTORY_WORDS.iter().any(|option| word == option || word.starts_with(&format!("{option}=")))
            || word.strip_prefix("-C").is_some_and(|directory| !directory.is_empty())
    };
    if simple_commands.iter().flatten().any(changes_directory) {
        // Then the file in which a tool looks up its tasks may be in any directory. Of a new file nothing is known but its name.
        let is_of_root =
            |script: &&mut CheckScript| script.form == PathForm::Root && script.part != ScriptPart::NewFile;
        for script in scripts.iter_mut().filter(is_of_root) {
            script.form = PathForm::End;
        }
    }
    scripts
}

/// Lists the scripts and makefiles that a script of a check sources, runs or includes, as far as they can be told from its text. Tests,
/// and what is in the directories of the product, are the work itself.
pub fn list_included_scripts(script_text: &str) -> Vec<CheckScript> {
    let joined = script_text.replace("\\\n", " ");
    let lines = joined.lines().map(|line| line.trim_start().trim_start_matches(['@', '-', '+']).trim_start());
    let code: Vec<&str> = lines.filter(|line| !line.starts_with('#')).collect();
    let commands = expand_variables(&split_shell_line(&code.join("\n")));
    let mut scripts: Vec<CheckScript> = commands.iter().flat_map(|words| list_commanded_scripts(words)).collect();
    scripts.retain(|script| may_be_included(&script.path));
    scripts.dedup();
    scripts
}

fn list_commanded_scripts(words: &[String]) -> Vec<CheckScript> {
    let Some((program, arguments)) = skip_prefixes(words).split_first() else { return Vec::new() };
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if matches!(program.as_str(), "include" | "sinclude") {
        return arguments.iter().map(|path| CheckScript::from_word(path)).collect();
    }
    let mut scripts = list_scripts_of(words);
    scripts.retain(|script| {
        let is_task_file = script.form == PathForm::Root && script.part == ScriptPart::WholeFile;
        is_task_file || matches!(script.form, PathForm::End | PathForm::Pattern)
    });
    scripts
}

/// Whether a file may be a script or makefile that another one includes.
pub fn may_be_included(path: &str) -> bool {
    let name = file_name(path);
    let is_script = SHELL_ENDINGS.iter().any(|ending| path.ends_with(ending)) || path.ends_with(".mk");
    let is_test = is_test_name(path) && !is_runner_name(path);
    (is_script || !name.contains('.')) && !has_directory(path, &["src", "bin"]) && !is_test
}

/// Whether a script is one that runs tests, by its name, and not a test.
fn is_runner_name(path: &str) -> bool {
    let name = file_name(path).to_lowercase();
    let stem = SHELL_ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
    let words: Vec<&str> = stem.split(|character: char| !character.is_ascii_alphanumeric()).collect();
    let has_runner_word = words.iter().any(|word| matches!(*word, "run" | "runner" | "runtests" | "all"));
    // `ci/test.sh` runs tests, and `tests/test.sh` may be one.
    has_runner_word || matches!(stem, "test" | "tests") && !has_directory(path, &["test", "tests", "spec", "specs"])
}

/// Whether a test that gets this name is not found by a runner any more: they look at names, most of them also in a directory of tests.
pub fn loses_test_name(old_path: &str, new_path: &str) -> bool {
    is_test_name(old_path) && !is_test_name(new_path)
        || is_test_name(file_name(old_path)) && !is_test_name(file_name(new_path))
}

/// Whether one of these directories is above a file.
fn has_directory(path: &str, names: &[&str]) -> bool {
    path.split('/').rev().skip(1).any(|directory| names.contains(&directory))
}

/// Whether a command has an interpreter run the files that another one lists: `xargs -n1 sh`, `find ci -exec sh {} +`.
fn runs_listed_files(words: &[String]) -> bool {
    let words = skip_prefixes(words);
    let runs_them = |words: &[String]| {
        let is_parsed_only = words.get(1).is_some_and(|option| option == "-n");
        let is_runner = |word: &String| word == "{}" || INTERPRETERS.contains(&file_name(word));
        !is_parsed_only && words.first().is_some_and(is_runner)
    };
    match words.first().map(|word| file_name(word)) {
        Some("xargs" | "parallel") => {
            let position = words[1..].iter().position(|word| {
                !word.starts_with('-') && !word.starts_with(|c: char| c.is_ascii_digit()) && *word != "{}"
            });
            position.is_some_and(|position| runs_them(&words[position + 1..]))
        }
        Some("find" | "fd") => {
            let position = words.iter().position(|word| matches!(word.as_str(), "-exec" | "-execdir" | "-x" | "-X"));
            position.is_some_and(|position| runs_them(&words[position + 1..]))
        }
        _ => false,
    }
}

/// Lists the files, patterns and directories that a command names.
fn list_named_files(words: &[String]) -> Vec<CheckScript> {
    let words = skip_prefixes(words);
    let arguments = words.iter().skip(1).filter(|word| !word.starts_with('-') && *word != "{}" && *word != "+");
    let as_scripts = |word: &String| {
        let path = normalize_path(word);
        let below = CheckScript { form: PathForm::Below, path: path.clone(), part: ScriptPart::WholeFile };
        if path.is_empty() { vec![below] } else { vec![CheckScript::from_word(word), below] }
    };
    arguments.flat_map(as_scripts).collect()
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The name of a program without a version: `python3.11` is `python3`.
fn program_name(program: &str) -> &str {
    let name = file_name(program);
    match name.split_once('.') {
        Some((name, version)) if !name.is_empty() && version.chars().all(|c| c.is_ascii_digit() || c == '.') => name,
        _ => name,
    }
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
    let Some((program, arguments)) = skip_prefixes(words).split_first() else { return Vec::new() };
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let program_name = program_name(program);
    let whole_file = |path: &str| CheckScript::new(PathForm::End, &normalize_path(path), ScriptPart::WholeFile);
    let mut scripts = Vec::new();
    let is_own_program = program.contains('/') && !program.starts_with('/');
    if is_own_program {
        scripts.push(CheckScript::from_word(program));
    }
    if INTERPRETERS.contains(&program_name) {
        scripts.extend(list_interpreted_scripts(program_name, &arguments));
    }
    if PACKAGE_RUNNERS.contains(&program_name) {
        scripts.push(CheckScript::new(PathForm::Root, "package.json", ScriptPart::PackageScripts));
    }
    let task_files = TASK_FILES.iter().find(|(tool, _)| *tool == program_name);
    if let Some((_, task_files)) = task_files {
        scripts.extend(task_files.iter().map(|name| CheckScript::new(PathForm::Root, name, ScriptPart::WholeFile)));
        let named_file = arguments.iter().position(|argument| matches!(*argument, "-f" | "--file" | "-c"));
        scripts
            .extend(named_file.and_then(|position| arguments.get(position + 1)).map(|file_name| whole_file(file_name)));
    }
    if FILE_MAKERS.contains(&program_name) {
        let targets = arguments.iter().filter(|argument| !argument.starts_with('-') && !argument.contains('='));
        scripts.extend(targets.map(|target| CheckScript::new(PathForm::Root, target, ScriptPart::NewFile)));
    }
    let is_opaque = is_own_program || SHELLS.contains(&program_name) || task_files.is_some();
    scripts.extend(list_runner_files(if is_opaque { None } else { Some(program_name) }));
    scripts
}

/// Lists what an interpreter runs with these arguments.
fn list_interpreted_scripts(interpreter: &str, arguments: &[&str]) -> Vec<CheckScript> {
    // `sh < script` reads the script as its input.
    if let Some(position) = arguments.iter().position(|argument| *argument == "<") {
        return arguments.get(position + 1).map(|script| CheckScript::from_word(script)).into_iter().collect();
    }
    let is_shell = SHELLS.contains(&interpreter);
    let mut remaining_args = arguments.iter();
    while let Some(argument) = remaining_args.next() {
        match *argument {
            // In code of another language nothing looks like a command that runs a script.
            "-c" => return list_line_scripts(&remaining_args.as_slice().join(" ")),
            "-e" | "--eval" if !is_shell => return Vec::new(),
            "-m" => {
                let module_path = remaining_args.next().map(|module| module.replace('.', "/"));
                let candidates = |path: String| [format!("{path}.py"), format!("{path}/__main__.py")];
                let paths = module_path.into_iter().flat_map(candidates);
                return paths.map(|path| CheckScript::from_word(&path)).collect();
            }
            // These have a value.
            "-O" | "+O" | "--rcfile" | "--init-file" if is_shell => drop(remaining_args.next()),
            "-r" | "--require" | "-W" | "-X" | "-I" if !is_shell => drop(remaining_args.next()),
            // It only parses the script.
            "-n" if is_shell => return Vec::new(),
            // Letters of shells can be joined: `-ec CODE`, `-euo pipefail`.
            option if is_shell && option.starts_with(['-', '+']) && !option.starts_with("--") => {
                if option.ends_with('c') {
                    return list_line_scripts(&remaining_args.as_slice().join(" "));
                }
                if option.ends_with('o') {
                    remaining_args.next();
                }
            }
            option if option.starts_with('-') => {}
            script => return vec![CheckScript::from_word(script)],
        }
    }
    Vec::new()
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
            ("nice -n 5 bash -e check.sh", "check.sh"),
            ("env -u CI nice -n 19 ./check.sh", "check.sh"),
            ("S=check.sh; sh $S", "check.sh"),
            ("S=\"check.sh\" && sh \"${S}\"", "check.sh"),
            ("for t in ci/*.sh; do sh $t || exit 1; done", "ci/lint.sh"),
            ("for t in ci/a.sh ci/b.sh; do bash -e \"$t\"; done", "ci/b.sh"),
            ("ls ci/*.sh | xargs -n1 sh", "ci/lint.sh"),
            ("find ci -name '*.sh' | xargs -n 1 bash", "ci/deep/lint.sh"),
            ("find ci -type f -exec sh {} +", "ci/lint.sh"),
            ("find . -name '*.sh' -exec {} \\;", "ci/lint.sh"),
            ("make check", "check"),
            ("make -s check", "check"),
            ("python3 -m unittest", "unittest.py"),
            ("pytest -q", "tests/conftest.py"),
            ("sh check.sh", "conftest.py"),
            ("make test", "unittest/__init__.py"),
            ("npx vitest run", "web/vitest.config.ts"),
            ("npm test", "jest.config.js"),
            ("cargo test", "crates/a/build.rs"),
            ("PYTEST_ADDOPTS=\"-q -x\" sh check.sh", "check.sh"),
            ("A='b c d' nice sh check.sh", "check.sh"),
            ("sh \"$PWD/check.sh\"", "check.sh"),
            ("sh \"$(git rev-parse --show-toplevel)/check.sh\"", "check.sh"),
            ("python3.11 check.py", "check.py"),
            ("npm test --workspaces", "packages/a/package.json"),
            ("make -Csub check", "sub/Makefile"),
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
            ("for t in tests/*.sh; do sh $t; done", "tests/mill_test.sh"),
            ("for f in src/*.sh; do sh -n $f; done", "src/mill.sh"),
            ("find src -name '*.sh' -exec shellcheck {} +", "src/mill.sh"),
            ("find tests -name '*.sh' | xargs -n1 sh", "tests/mill.sh"),
            ("ls src/*.sh | xargs wc -l", "src/mill.sh"),
            ("make check", "src/check"),
            ("cargo test", "unittest.py"),
            ("go test ./...", "conftest.py"),
            ("python3 -m unittest", "app/types.py"),
            ("grep -q x conftest.py", "conftest.py"),
            ("find . -name '*.sh' -exec sh -n {} +", "src/mill.sh"),
            ("find src -name '*.sh' | xargs -n1 bash -n", "src/mill.sh"),
            ("cargo test", "src/build.rs"),
            ("make check", "docs/Makefile"),
            ("npm test", "packages/new/package.json"),
            ("cd backend && pytest", "backend/app/types.py"),
        ] {
            assert!(!changed(command, path), "{command}: {path}");
        }
    }

    #[test]
    fn what_a_script_includes_is_found_and_the_product_is_not() {
        let script = "#!/bin/sh\n# . old.sh\nset -e\n. ./ci/common.sh\nfor part in ci/parts/*.sh; do sh $part; done\n\
            for test in tests/*.sh; do sh \"$test\"; done\n. src/mill.sh\n./bin/mill --version\nmake -f ci/more.mk lint\n\
            . \"$(dirname \"$0\")/ci/near.sh\"\nDIR=$(cd \"$(dirname \"$0\")\" && pwd)\n. \"$DIR/ci/dir.sh\"\n\
            . \"${BASH_SOURCE%/*}/ci/own.sh\"\n";
        let included = list_included_scripts(script);
        let matches = |path: &str| included.iter().any(|script| script.matches_path(path));
        for path in
            ["ci/common.sh", "ci/parts/lint.sh", "ci/more.mk", "Makefile", "ci/near.sh", "ci/dir.sh", "ci/own.sh"]
        {
            assert!(matches(path), "{path}: {included:?}");
        }
        for path in ["old.sh", "tests/mill.sh", "src/mill.sh", "bin/mill"] {
            assert!(!matches(path), "{path}: {included:?}");
        }
        let included =
            list_included_scripts("include ci/rules.mk\ncheck:\n\t@sh ci/check.sh && \\\n\t  sh ci/last.sh\n");
        let paths: Vec<&str> = included.iter().map(|script| script.path.as_str()).collect();
        assert_eq!(paths, ["ci/rules.mk", "ci/check.sh", "ci/last.sh"]);
    }

    #[test]
    fn code_for_a_shell_is_read_in_a_list_of_words_too() {
        let words = ["bash", "-c", "true && ./check.sh --all"].map(String::from).to_vec();
        assert_eq!(CommandLine::Argv(words).list_scripts()[0].path, "check.sh");
    }

    #[test]
    fn scripts_that_run_tests_are_told_from_tests() {
        for path in
            ["ci/test.sh", "test.sh", "tests/run.sh", "tests/run-tests.sh", "scripts/all_tests.bash", "ci/lint.sh"]
        {
            assert!(may_be_included(path), "{path}");
        }
        for path in ["tests/sift_test.sh", "tests/test.sh", "src/test.sh", "spec/mill.sh"] {
            assert!(!may_be_included(path), "{path}");
        }
    }

    #[test]
    fn a_test_keeps_a_name_by_which_runners_find_it() {
        for (old, new) in [
            ("tests/test_mill.py", "tests/mill_old.py"),
            ("tests/mill.test.ts", "tests/mill.ts"),
            ("tests/test_mill.py", "attic/test_mill.txt.md"),
            ("src/MillTest.java", "src/Mill.java"),
            ("tests/mill.rs", "attic/mill.rs"),
        ] {
            assert!(loses_test_name(old, new), "{old} -> {new}");
        }
        for (old, new) in [
            ("tests/test_mill.py", "tests/unit/test_mill.py"),
            ("tests/mill.rs", "tests/sift.rs"),
            ("test_mill.py", "mill_test.py"),
            ("src/mill.rs", "src/grind.rs"),
        ] {
            assert!(!loses_test_name(old, new), "{old} -> {new}");
        }
    }

    #[test]
    fn a_program_with_arguments_is_read_without_a_shell() {
        let words = ["sh", "my check.sh"].map(String::from).to_vec();
        assert_eq!(CommandLine::Argv(words).list_scripts()[0].path, "my check.sh");
        let words = ["make", "-C", "sub", "check"].map(String::from).to_vec();
        let scripts = CommandLine::Argv(words).list_scripts();
        assert!(scripts.iter().any(|script| script.matches_path("sub/Makefile")), "{scripts:?}");
    }
}
