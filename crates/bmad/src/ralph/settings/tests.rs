use proptest::prelude::*;

use super::*;

fn read_settings(settings_text: &str, environment: &[(&str, &str)]) -> RalphSettings {
    let environment = environment.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    read_ralph_settings(settings_text, ".ralphrc", &environment)
}

fn problem_lines(settings: &RalphSettings) -> Vec<String> {
    settings.problems.iter().map(ToString::to_string).collect()
}

fn from_line<T>(value: T, line: usize) -> Option<RalphValue<T>> {
    Some(RalphValue { value, origin: RalphOrigin::File { line } })
}

fn from_environment<T>(value: T) -> Option<RalphValue<T>> {
    Some(RalphValue { value, origin: RalphOrigin::Environment })
}

const FULL_FILE: &str = r#"# settings
PLATFORM_DRIVER="${PLATFORM_DRIVER:-codex}"
MAX_CALLS_PER_HOUR=80   # calls
CLAUDE_TIMEOUT_MINUTES=15
REVIEW_MODE="${REVIEW_MODE:-ultimate}"
REVIEW_INTERVAL="${REVIEW_INTERVAL:-5}"
ALLOWED_TOOLS="Write, Read,Bash(git add, git *),Bash(npm *)"
CLAUDE_PERMISSION_MODE='acceptEdits'
SESSION_CONTINUITY=true
SESSION_EXPIRY_HOURS=24
QUALITY_GATES="npm test; npm run lint ;"
QUALITY_GATE_MODE=circuit-breaker
QUALITY_GATE_TIMEOUT=120
export QUALITY_GATE_ON_COMPLETION_ONLY=true
CB_NO_PROGRESS_THRESHOLD=3
CB_SAME_ERROR_THRESHOLD=5
CB_OUTPUT_DECLINE_THRESHOLD=70
CB_PERMISSION_DENIAL_THRESHOLD=2
CB_COOLDOWN_MINUTES=0
"#;

#[test]
fn every_known_key_is_read_with_its_line() {
    let settings = read_settings(FULL_FILE, &[]);
    let tools = ["Write", "Read", "Bash(git add, git *)", "Bash(npm *)"].map(String::from).to_vec();
    let commands = ["npm test", "npm run lint"].map(String::from).to_vec();
    let expected = RalphSettings {
        platform: from_line(RalphPlatform::Codex, 2),
        max_calls_per_hour: from_line(80, 3),
        timeout_minutes: from_line(15, 4),
        review_mode: from_line(RalphReviewMode::Ultimate, 5),
        review_interval: from_line(5, 6),
        allowed_tools: from_line(tools, 7),
        permission_mode: from_line("acceptEdits".into(), 8),
        session: RalphSession { continuity: from_line(true, 9), expiry_hours: from_line(24, 10) },
        gates: RalphGates {
            commands: from_line(commands, 11),
            mode: from_line(RalphGateMode::Block, 12),
            timeout_seconds: from_line(120, 13),
            on_completion_only: from_line(true, 14),
        },
        breaker: RalphBreaker {
            no_progress: from_line(3, 15),
            same_error: from_line(5, 16),
            output_decline_percent: from_line(70, 17),
            permission_denials: from_line(2, 18),
            cooldown_minutes: from_line(0, 19),
        },
        problems: settings.problems.clone(),
    };
    assert_eq!(settings, expected);
    assert_eq!(problem_lines(&settings), [".ralphrc:12: QUALITY_GATE_MODE: `circuit-breaker` acts like `block`"]);
}

#[test]
fn gates_become_checks() {
    let check_specs = read_settings(FULL_FILE, &[]).to_check_specs();
    let expected = |command: &str| CheckSpec {
        when: CheckTime::Completion,
        on_failure: FailureAction::Block,
        timeout_ms: Some(120_000),
        ..CheckSpec::new(CommandLine::from_shell_line(command))
    };
    assert_eq!(check_specs, [expected("npm test"), expected("npm run lint")]);
    // bmalph's own default is to warn.
    let listed = read_settings("QUALITY_GATES=('make a; b' \"make c\")", &[]).to_check_specs();
    assert_eq!(listed.len(), 2);
    assert_eq!((listed[0].command.to_string().as_str(), listed[0].on_failure), ("make a; b", FailureAction::Warn));
    assert_eq!(read_settings("QUALITY_GATES=''", &[]).to_check_specs(), []);
}

#[test]
fn the_environment_wins_over_the_file() {
    let environment = [("REVIEW_INTERVAL", "9"), ("PLATFORM_DRIVER", "cursor"), ("REVIEW_MODE", ""), ("HOME", "/h")];
    let settings = read_settings(FULL_FILE, &environment);
    assert_eq!(settings.review_interval, from_environment(9));
    assert_eq!(settings.platform, from_environment(RalphPlatform::Cursor));
    assert_eq!(settings.review_mode, from_line(RalphReviewMode::Ultimate, 5));
    assert_eq!(settings.problems.len(), 1);
    let settings = read_settings("", &[("CB_COOLDOWN_MINUTES", "soon")]);
    let message = ".ralphrc: CB_COOLDOWN_MINUTES: `soon` is not a whole number from 0 (from the environment); ignored";
    assert_eq!(problem_lines(&settings), [message]);
}

#[test]
fn a_default_does_not_replace_what_a_line_above_has_set() {
    let settings = read_settings("REVIEW_INTERVAL=7\nREVIEW_INTERVAL=${REVIEW_INTERVAL:-5}\n", &[]);
    assert_eq!(settings.review_interval, from_line(7, 1));
    let settings = read_settings("REVIEW_INTERVAL=\nREVIEW_INTERVAL=${REVIEW_INTERVAL:-5}\n", &[]);
    assert_eq!(settings.review_interval, from_line(5, 2));
    assert_eq!(read_settings("REVIEW_INTERVAL=7\nREVIEW_INTERVAL=8", &[]).review_interval, from_line(8, 2));
}

#[test]
fn the_older_review_switch_counts_while_the_mode_is_off() {
    use RalphReviewMode::{Enhanced, Off, Ultimate};
    for (settings_text, environment, expected) in [
        ("REVIEW_ENABLED=true", &[][..], from_line(Enhanced, 1)),
        ("REVIEW_MODE=off\nREVIEW_ENABLED=true", &[], from_line(Enhanced, 2)),
        ("REVIEW_MODE=ultimate\nREVIEW_ENABLED=true", &[], from_line(Ultimate, 1)),
        ("REVIEW_MODE=off\nREVIEW_ENABLED=false", &[], from_line(Off, 1)),
        ("REVIEW_ENABLED=false", &[], None),
        ("REVIEW_ENABLED=true", &[("REVIEW_MODE", "off")], from_environment(Off)),
        ("REVIEW_MODE=off", &[("REVIEW_ENABLED", "true")], from_environment(Enhanced)),
    ] {
        let settings = read_settings(settings_text, environment);
        assert_eq!(settings.review_mode, expected, "{settings_text:?} {environment:?}");
        assert_eq!(settings.problems, [], "{settings_text:?}");
    }
}

#[test]
fn what_cannot_be_used_is_named_and_ignored() {
    let settings_text = "PROJECT_NAME=x\nREVIEW_MODE=full\nMAX_CALLS_PER_HOUR=$(nproc)\nsource ~/.rc\n\
        CB_OUTPUT_DECLINE_THRESHOLD=170\nSESSION_CONTINUITY=(a b)\nCLAUDE_PERMISSION_MODE=yolo\n";
    let settings = read_settings(settings_text, &[]);
    assert_eq!(
        problem_lines(&settings),
        [
            ".ralphrc:1: PROJECT_NAME is not a setting that Tribunal uses; ignored",
            ".ralphrc:2: REVIEW_MODE: `full` is not off, enhanced or ultimate; ignored",
            ".ralphrc:3: not read: it has a command substitution (nothing is executed)",
            ".ralphrc:4: not read: not an assignment of a constant (nothing is executed)",
            ".ralphrc:5: CB_OUTPUT_DECLINE_THRESHOLD: `170` is not a whole number from 1 to 100; ignored",
            ".ralphrc:6: SESSION_CONTINUITY: a list is not a single value; ignored",
            ".ralphrc:7: CLAUDE_PERMISSION_MODE: `yolo` is not default, acceptEdits, plan, dontAsk, auto or \
             bypassPermissions; ignored",
        ]
    );
    assert_eq!(RalphSettings { problems: Vec::new(), ..settings }, RalphSettings::default());
}

proptest! {
    #[test]
    fn any_text_can_be_read(settings_text in "(?s)((export )?(REVIEW_MODE|QUALITY_GATES|X)=|[\"'$(){};]|\n|a|.){0,40}") {
        let _ = read_settings(&settings_text, &[]);
    }

    #[test]
    fn a_substitution_gives_no_value(
        before in "[a-z \"]{0,5}",
        substitution in prop::sample::select(vec!["$(x)", "`x`", "${X}", "$X", "${REVIEW_INTERVAL:-$(x)}"]),
        after in "[0-9 \";]{0,5}",
    ) {
        let settings = read_settings(&format!("REVIEW_INTERVAL={before}{substitution}{after}"), &[]);
        prop_assert_eq!(settings.review_interval, None);
        prop_assert!(!settings.problems.is_empty());
    }
}
