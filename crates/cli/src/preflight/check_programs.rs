//! Whether the programs of checks exist. Only the first program of a line is looked for, and only where its name is
//! plain: everything else is left to the shell.

use std::path::Path;

use tribunal_workflows::{
    development::checks::{CommandLine, FailureAction},
    runs::plan::RunPlan,
    tasks::client::JobKind,
};

use crate::{
    clients::programs::{EnvLookup, ProgramProblem, locate_program},
    messages::user_errors::{EXIT_ENVIRONMENT, UserError},
};

/// Words that a shell understands by itself, so that no program of this name is needed.
const SHELL_WORDS: &str = ". : [ [[ { } alias bg break builtin case cd command continue declare do done echo elif else esac eval \
    exec exit export false fg fi for function getopts hash if jobs kill let local printf pwd read readonly return select set \
    shift source test then time times trap true type ulimit umask unalias unset until wait while";

/// Finds checks that could not run. Without fixes there is nothing to check, and a check that only warns may fail.
pub(super) fn find_check_faults(plan: &RunPlan, project_root: &Path, env_variable: EnvLookup<'_>) -> Vec<UserError> {
    let checks = &plan.settings.checks;
    if !plan.order.needed_jobs().contains(&JobKind::Fix) {
        return Vec::new();
    }
    let uses_shell = checks.iter().any(|check| matches!(check.command, CommandLine::Shell(_)));
    if uses_shell && let Err(problem) = locate_program(project_root, "sh", env_variable) {
        return vec![explain_check("sh", "sh", &problem)];
    }
    let mut faults = Vec::new();
    for (check_index, check) in checks.iter().enumerate() {
        let program = match &check.command {
            CommandLine::Shell(command_line) => first_program(command_line),
            CommandLine::Argv(words) => words.first().cloned(),
        };
        let Some(program) = program.filter(|_| check.on_failure != FailureAction::Warn) else { continue };
        let Err(problem) = locate_program(project_root, &program, env_variable) else { continue };
        // An earlier command may create a program of the project, for instance by building it.
        let may_be_built = check_index > 0 && program.contains('/');
        if !may_be_built {
            faults.push(explain_check(&check.command.to_string(), &program, &problem));
        }
    }
    faults
}

fn explain_check(command_line: &str, program: &str, problem: &ProgramProblem) -> UserError {
    UserError::new(EXIT_ENVIRONMENT, format!("check `{command_line}`: {}", problem.describe(program)))
        .with_reason("Checks must pass before a fix is applied, so no fix could be applied. Nothing was started.")
        .with_step(problem.suggest_fix(program, "checks"))
        .with_step("or review without fixing: add `--no-fix`")
}

/// Returns the program that a command line starts first; `None` if only a shell can tell.
fn first_program(command_line: &str) -> Option<String> {
    let mut remaining_text = command_line.trim_start();
    if let Some(negated_text) = remaining_text.strip_prefix("! ") {
        remaining_text = negated_text.trim_start();
    }
    loop {
        // A quoted name is written by settings that give a command as a list of words.
        if let Some(quoted_text) = remaining_text.strip_prefix('\'') {
            let (program, rest) = quoted_text.split_once('\'')?;
            return (rest.is_empty() || rest.starts_with(char::is_whitespace)).then(|| program.to_string());
        }
        let word_end = remaining_text.find(char::is_whitespace).unwrap_or(remaining_text.len());
        let (first_word, rest) = remaining_text.split_at(word_end);
        if let Some((variable_name, variable_value)) = first_word.split_once('=')
            && is_variable_name(variable_name)
        {
            // With another search path it is unknown what is found, and a quoted value may contain blanks.
            if variable_name == "PATH" || variable_value.contains(['"', '\'', '\\', '`', '(']) {
                return None;
            }
            remaining_text = rest.trim_start();
            continue;
        }
        // A name ends where an operator begins, as in `make;`.
        let operator_start = first_word.find([';', '|', '&']).unwrap_or(first_word.len());
        let program = &first_word[..operator_start];
        let is_plain = |character: char| character.is_alphanumeric() || "/._-+@%,".contains(character);
        let is_shell_word = SHELL_WORDS.split(' ').any(|shell_word| shell_word == program);
        return (!program.is_empty() && program.chars().all(is_plain) && !is_shell_word).then(|| program.to_string());
    }
}

fn is_variable_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|character: char| character.is_ascii_digit())
        && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
}

#[cfg(test)]
mod tests {
    use tribunal_workflows::development::checks::CheckSpec;

    use super::*;

    #[test]
    fn only_a_plain_first_word_is_a_program() {
        for (command_line, expected) in [
            ("make test", Some("make")),
            ("  cargo test; echo done", Some("cargo")),
            ("make; make install", Some("make")),
            ("! grep -n TBD plan.md", Some("grep")),
            ("CI=1 FORCE=yes npm test", Some("npm")),
            ("./scripts/check.sh", Some("./scripts/check.sh")),
            ("'my check' 'a b'", Some("my check")),
            ("a|b", Some("a")),
            ("cd sub && make", None),
            ("test -f plan.md", None),
            ("[ -f plan.md ]", None),
            ("if true; then make; fi", None),
            ("$MAKE test", None),
            ("(make)", None),
            ("PATH=./bin tool", None),
            ("NAME=\"a b\" tool", None),
            ("~/bin/tool", None),
            ("", None),
            ("'unclosed", None),
        ] {
            assert_eq!(first_program(command_line).as_deref(), expected, "{command_line}");
        }
    }

    #[test]
    fn a_missing_program_is_reported_unless_it_could_be_built_or_is_not_needed() {
        let mut plan = tribunal_testkit::samples::sample_plan();
        plan.order.fix = true;
        plan.settings.checks = ["./out/first", "no-such-program-here", "./out/second"]
            .map(|line| CheckSpec::new(CommandLine::from_shell_line(line)))
            .to_vec();
        let directory = tempfile::tempdir().unwrap();
        let env_variable = |name: &str| std::env::var_os(name);
        let faults = find_check_faults(&plan.clone().into_run(), directory.path(), &env_variable);
        let messages: Vec<&str> = faults.iter().map(|fault| fault.message.as_str()).collect();
        assert_eq!(
            messages,
            [
                "check `./out/first`: program `./out/first` does not exist",
                "check `no-such-program-here`: program `no-such-program-here` not found on PATH"
            ]
        );
        plan.order.fix = false;
        assert!(find_check_faults(&plan.into_run(), directory.path(), &env_variable).is_empty());
    }
}
