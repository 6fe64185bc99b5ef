//! Finds the program that a name in the settings stands for, and says what keeps it from being started. Nothing is started.

use std::{
    env,
    ffi::OsString,
    fs,
    io::Read,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use tribunal_engine::text::shell_quote;
use tribunal_supervise::search_dirs;

/// How variables of the environment are read.
pub(crate) type EnvLookup<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Why a program cannot be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProgramProblem {
    /// There is no such program; a similar name may be on the search path.
    NotFound {
        similar_name: Option<String>,
    },
    /// The program is only in a directory whose entry on the search path is relative, and those are not searched.
    RelativeDirectory {
        search_dir: PathBuf,
    },
    Directory {
        path: PathBuf,
    },
    NotExecutable {
        path: PathBuf,
    },
    /// The first line of the script names a program that does not exist.
    MissingInterpreter {
        path: PathBuf,
        interpreter: String,
    },
}

impl ProgramProblem {
    /// Describes the problem: `program X not found on PATH`.
    pub fn describe(&self, program_name: &str) -> String {
        match self {
            ProgramProblem::NotFound { .. } if program_name.contains('/') => {
                format!("program `{program_name}` does not exist")
            }
            ProgramProblem::NotFound { .. } => format!("program `{program_name}` not found on PATH"),
            ProgramProblem::RelativeDirectory { search_dir } => format!(
                "program `{program_name}` is only in `{}`, and relative entries of PATH are not searched",
                search_dir.display()
            ),
            ProgramProblem::Directory { .. } => format!("program `{program_name}` is a directory"),
            ProgramProblem::NotExecutable { .. } => format!("program `{program_name}` is not executable"),
            ProgramProblem::MissingInterpreter { interpreter, .. } => {
                format!("program `{program_name}` is a script for `{interpreter}`, which does not exist")
            }
        }
    }

    /// Suggests what to do. `setting_path` is the setting that names the program.
    pub fn suggest_fix(&self, program_name: &str, setting_path: &str) -> String {
        match self {
            ProgramProblem::NotFound { similar_name: Some(similar_name) } => {
                format!("did you mean `{similar_name}`? fix `{setting_path}`, or install `{program_name}`")
            }
            ProgramProblem::NotFound { .. } if program_name.contains('/') => format!("fix `{setting_path}`"),
            ProgramProblem::NotFound { .. } => format!("install `{program_name}`, or fix `{setting_path}`"),
            ProgramProblem::RelativeDirectory { search_dir } => {
                let program_path: PathBuf = Path::new(".").join(search_dir).join(program_name).components().collect();
                format!("set `{setting_path}` to `{}` if you mean that program", program_path.display())
            }
            ProgramProblem::Directory { .. } => format!("set `{setting_path}` to a program in that directory"),
            ProgramProblem::NotExecutable { path } => {
                format!("make it executable: `chmod +x {}`", shell_quote(&path.to_string_lossy()))
            }
            ProgramProblem::MissingInterpreter { path, interpreter } => {
                format!("install `{interpreter}`, or fix the first line of {}", path.display())
            }
        }
    }
}

/// Finds the program that typing this name would start, or says which similar name there is.
pub(crate) fn locate_program(
    directory: &Path,
    program_name: &str,
    env_variable: EnvLookup<'_>,
) -> Result<PathBuf, ProgramProblem> {
    find_program(directory, program_name, env_variable).map_err(|problem| match problem {
        ProgramProblem::NotFound { .. } if !program_name.contains('/') => {
            ProgramProblem::NotFound { similar_name: find_similar_name(program_name, env_variable) }
        }
        problem => problem,
    })
}

/// Finds the program that typing this name would start. A name with a slash is a path from `directory`.
pub(crate) fn find_program(
    directory: &Path,
    program_name: &str,
    env_variable: EnvLookup<'_>,
) -> Result<PathBuf, ProgramProblem> {
    if program_name.contains('/') {
        let program_path = directory.join(program_name);
        return match program_path.metadata() {
            Ok(metadata) if metadata.is_dir() => Err(ProgramProblem::Directory { path: program_path }),
            Ok(_) if !is_executable(&program_path) => Err(ProgramProblem::NotExecutable { path: program_path }),
            Ok(_) => require_interpreter(program_path, env_variable),
            Err(_) => Err(ProgramProblem::NotFound { similar_name: None }),
        };
    }
    let candidates: Vec<PathBuf> = match env_variable("PATH") {
        Some(search_path) => search_dirs(&search_path).map(|directory| directory.join(program_name)).collect(),
        None => Vec::new(),
    };
    // A shell goes on searching if a file of this name cannot be executed.
    if let Some(program_path) = candidates.iter().find(|candidate| is_executable(candidate)) {
        return require_interpreter(program_path.clone(), env_variable);
    }
    if let Some(path) = candidates.into_iter().find(|candidate| candidate.is_file()) {
        return Err(ProgramProblem::NotExecutable { path });
    }
    Err(match find_relative_dir(directory, program_name, env_variable) {
        Some(search_dir) => ProgramProblem::RelativeDirectory { search_dir },
        None => ProgramProblem::NotFound { similar_name: None },
    })
}

/// Finds the relative entry of the search path that a shell in this directory would use.
fn find_relative_dir(directory: &Path, program_name: &str, env_variable: EnvLookup<'_>) -> Option<PathBuf> {
    let search_path = env_variable("PATH")?;
    let mut relative_dirs = env::split_paths(&search_path).filter(|search_dir| search_dir.is_relative());
    let found_dir = relative_dirs.find(|search_dir| is_executable(&directory.join(search_dir).join(program_name)))?;
    // An empty entry means the current directory.
    Some(if found_dir.as_os_str().is_empty() { PathBuf::from(".") } else { found_dir })
}

/// Returns whether some user can execute a file, as far as its permissions tell.
pub(crate) fn is_executable(program_path: &Path) -> bool {
    program_path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// Checks that the interpreter of a script exists. Anything but a script needs none.
fn require_interpreter(program_path: PathBuf, env_variable: EnvLookup<'_>) -> Result<PathBuf, ProgramProblem> {
    let Some((interpreter, first_argument)) = read_interpreter(&program_path) else { return Ok(program_path) };
    if !is_executable(Path::new(&interpreter)) {
        return Err(ProgramProblem::MissingInterpreter { path: program_path, interpreter });
    }
    // `env` searches for the real interpreter; options and assignments before its name are left to `env`.
    let is_env = Path::new(&interpreter).file_name().is_some_and(|file_name| file_name == "env");
    let named_program =
        first_argument.filter(|argument| is_env && !argument.starts_with('-') && !argument.contains(['=', '/']));
    match named_program {
        Some(named_program) if !is_on_path(&named_program, env_variable) => {
            Err(ProgramProblem::MissingInterpreter { path: program_path, interpreter: named_program })
        }
        _ => Ok(program_path),
    }
}

fn is_on_path(program_name: &str, env_variable: EnvLookup<'_>) -> bool {
    env_variable("PATH")
        .is_some_and(|path| search_dirs(&path).any(|directory| is_executable(&directory.join(program_name))))
}

/// Reads the interpreter of a script and its first argument from the line that begins with `#!`.
fn read_interpreter(program_path: &Path) -> Option<(String, Option<String>)> {
    // The kernel reads no more of the line either.
    let mut first_bytes = [0; 256];
    let read_count = fs::File::open(program_path).ok()?.read(&mut first_bytes).ok()?;
    let first_text = String::from_utf8_lossy(&first_bytes[..read_count]).into_owned();
    let mut words = first_text.strip_prefix("#!")?.lines().next()?.split_whitespace().map(String::from);
    Some((words.next()?, words.next()))
}

/// Finds a program on the search path whose name is a typing mistake away.
fn find_similar_name(program_name: &str, env_variable: EnvLookup<'_>) -> Option<String> {
    // In short names one letter makes another word.
    let max_distance = if program_name.len() > 5 { 2 } else { 1 };
    if program_name.len() < 4 {
        return None;
    }
    let mut nearest: Option<(usize, String)> = None;
    for directory in search_dirs(&env_variable("PATH")?) {
        for dir_entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let Ok(found_name) = dir_entry.file_name().into_string() else { continue };
            let distance = strsim::damerau_levenshtein(program_name, &found_name);
            let is_nearer = nearest
                .as_ref()
                .is_none_or(|(best_distance, best_name)| (distance, &found_name) < (*best_distance, best_name));
            if distance <= max_distance && is_nearer && is_executable(&dir_entry.path()) {
                nearest = Some((distance, found_name));
            }
        }
    }
    nearest.map(|(_, found_name)| found_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory that is also the search path.
    struct FakePath(tempfile::TempDir);

    impl FakePath {
        fn new() -> FakePath {
            FakePath(tempfile::tempdir().unwrap())
        }

        fn write_file(&self, file_name: &str, file_text: &str, file_mode: u32) {
            let file_path = self.0.path().join(file_name);
            fs::write(&file_path, file_text).unwrap();
            fs::set_permissions(&file_path, fs::Permissions::from_mode(file_mode)).unwrap();
        }

        fn locate(&self, program_name: &str) -> Result<PathBuf, ProgramProblem> {
            let search_path = self.0.path().as_os_str().to_owned();
            let lookup = |name: &str| (name == "PATH").then(|| search_path.clone());
            locate_program(self.0.path(), program_name, &lookup)
        }

        fn path_of(&self, file_name: &str) -> PathBuf {
            self.0.path().join(file_name)
        }
    }

    #[test]
    fn a_program_is_found_by_name_and_by_path() {
        let fake_path = FakePath::new();
        fake_path.write_file("my-agent", "#!/bin/sh\n", 0o755);
        assert_eq!(fake_path.locate("my-agent"), Ok(fake_path.path_of("my-agent")));
        assert!(fake_path.locate("./my-agent").is_ok());
        assert!(fake_path.locate(&fake_path.path_of("my-agent").display().to_string()).is_ok());
    }

    #[test]
    fn each_problem_has_its_own_words_and_its_own_remedy() {
        let fake_path = FakePath::new();
        fake_path.write_file("my-agent", "", 0o755);
        fake_path.write_file("locked agent", "", 0o644);
        fake_path.write_file("orphan", "#!/opt/none/python3 -u\n", 0o755);
        fake_path.write_file("stray", "#!/usr/bin/env no-such-language\n", 0o755);
        fs::create_dir(fake_path.path_of("tools")).unwrap();
        let explain = |program_name: &str| {
            let problem = fake_path.locate(program_name).unwrap_err();
            let explanation =
                format!("{}; {}", problem.describe(program_name), problem.suggest_fix(program_name, "agents.x.argv"));
            explanation.replace(&fake_path.0.path().display().to_string(), "DIR")
        };
        for (program_name, expected) in [
            (
                "my-agnet",
                "program `my-agnet` not found on PATH; did you mean `my-agent`? fix `agents.x.argv`, or install `my-agnet`",
            ),
            ("absent", "program `absent` not found on PATH; install `absent`, or fix `agents.x.argv`"),
            ("bin/absent", "program `bin/absent` does not exist; fix `agents.x.argv`"),
            ("./tools", "program `./tools` is a directory; set `agents.x.argv` to a program in that directory"),
            (
                "locked agent",
                "program `locked agent` is not executable; make it executable: `chmod +x 'DIR/locked agent'`",
            ),
            (
                "./orphan",
                "program `./orphan` is a script for `/opt/none/python3`, which does not exist; \
                 install `/opt/none/python3`, or fix the first line of DIR/./orphan",
            ),
            (
                "stray",
                "program `stray` is a script for `no-such-language`, which does not exist; \
                 install `no-such-language`, or fix the first line of DIR/stray",
            ),
        ] {
            assert_eq!(explain(program_name), expected);
        }
    }

    #[test]
    fn relative_entries_of_the_search_path_are_not_searched() {
        let fake_path = FakePath::new();
        fs::create_dir(fake_path.path_of("tools")).unwrap();
        fake_path.write_file("git", "", 0o755);
        fake_path.write_file("tools/lint", "", 0o755);
        let explain = |search_path: &str, program_name: &str| {
            let lookup = |name: &str| (name == "PATH").then(|| search_path.into());
            let problem = locate_program(fake_path.0.path(), program_name, &lookup).unwrap_err();
            format!("{}; {}", problem.describe(program_name), problem.suggest_fix(program_name, "agents.x.argv"))
        };
        for search_path in [".:/none", ":/none", "/none:", "/none::"] {
            assert_eq!(
                explain(search_path, "git"),
                "program `git` is only in `.`, and relative entries of PATH are not searched; \
                 set `agents.x.argv` to `./git` if you mean that program",
                "{search_path}"
            );
        }
        assert!(
            explain("tools:/none", "lint").ends_with("set `agents.x.argv` to `./tools/lint` if you mean that program")
        );
    }

    #[test]
    fn a_directory_on_the_search_path_is_no_program() {
        let fake_path = FakePath::new();
        fs::create_dir(fake_path.path_of("agent")).unwrap();
        assert_eq!(fake_path.locate("agent"), Err(ProgramProblem::NotFound { similar_name: None }));
    }
}
