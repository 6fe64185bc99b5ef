use super::*;

const WIGGUM: &str = "---\nactive: true\niteration: 1\nmax_iterations: 50\ncompletion_promise: \"DONE\"\n\
                      started_at: \"2026-01-15T12:00:00Z\"\n---\n\nMake *all* [tests] pass.\n---\nstill the prompt\n";

/// In the format that the review loops of BMAD write: three lines of comments first, a heading above the prompt.
const FOREIGN: &str = "# state of a loop\n# made by a workflow\n\n---\nactive: true\nworkflow_name: \"prd\"\n\
                       current_round: 2\nmax_rounds: 3\npending_count: 4\nin_progress_count: 1\n\
                       # limits\nmax_consecutive_failures: 5\ncompletion_promise: \"ALL_ISSUES_RESOLVED\"\n---\n\
                       # Original Prompt (given again)\nReview it.\n\n---\nmore\n";

#[test]
fn another_tools_loop_is_understood() {
    let state = StateFile::parse_state(WIGGUM).unwrap();
    assert_eq!(state.work, SessionWork::Loop);
    assert_eq!((state.refusals, state.max_refusals), (1, 50));
    assert_eq!(state.promise.as_deref(), Some("DONE"));
    assert_eq!(state.prompt, "Make *all* [tests] pass.\n---\nstill the prompt");
    assert_eq!(state.touched_ms, timestamp::parse_wall_ms("2026-01-15T12:00:00"));
}

#[test]
fn a_loop_without_an_end_gets_one() {
    let state = StateFile::parse_state(&WIGGUM.replace("max_iterations: 50", "max_iterations: 0")).unwrap();
    assert_eq!(state.max_refusals, DEFAULT_MAX_REFUSALS);
    let state = StateFile::parse_state(&WIGGUM.replace("max_iterations: 50", "max_iterations: 4000000000")).unwrap();
    assert_eq!(state.max_refusals, MAX_REFUSALS_LIMIT);
}

#[test]
fn comments_may_come_first_and_the_heading_is_not_part_of_the_prompt() {
    let state = StateFile::parse_state(FOREIGN).unwrap();
    assert_eq!(state.work, SessionWork::Review);
    assert_eq!((state.refusals, state.max_refusals, state.open_count), (2, 3, 5));
    assert_eq!(state.prompt, "Review it.\n\n---\nmore");
}

#[test]
fn what_is_written_reads_back() {
    let bound = SessionAssignment {
        session: "abc".into(),
        work: SessionWork::Review,
        prompt: "one\n---\n# two: \"x\"".into(),
        promise: Some("all \"good\" [*]".into()),
        max_refusals: 7,
        step: None,
    };
    let counted = StateCounts { open: 2, assigned: 1, refusals: 3, ..StateCounts::default() };
    let text = render_state_file(
        &RunId::new("prd-k3f9"),
        &bound,
        &StateFileFacts::default(),
        &counted,
        "2026-11-15T01:02:03Z",
    );
    let state = StateFile::parse_state(&text).unwrap();
    assert_eq!(state.session_id, "abc");
    assert_eq!(state.run_id, Some(RunId::new("prd-k3f9")));
    assert_eq!((state.refusals, state.max_refusals, state.open_count), (3, 7, 3));
    assert_eq!(state.promise, bound.promise);
    assert_eq!(state.prompt, bound.prompt);
    assert_eq!(state.touched_ms, timestamp::parse_wall_ms("2026-11-15T01:02:03"));
}

#[test]
fn an_edit_changes_its_values_and_nothing_else() {
    let values = [("iteration", "2".to_string()), ("session_id", quote_yaml("s-1"))];
    let edited = replace_values(WIGGUM, &values).unwrap();
    let expected = WIGGUM
        .replace("iteration: 1\n", "iteration: 2\n")
        .replace("12:00:00Z\"\n---", "12:00:00Z\"\nsession_id: \"s-1\"\n---");
    assert_eq!(edited, expected);
    let crlf = WIGGUM.replace('\n', "\r\n");
    let same = super::replace_values(&crlf, &[("iteration", "2".into())]).unwrap();
    assert_eq!(same, crlf.replace("iteration: 1\r\n", "iteration: 2\r\n"));
}

#[test]
fn problems_of_a_state_file_are_reported() {
    for (file_text, expected_reason) in [
        ("", "`active` is missing"),
        ("---\nactive: true\n", "the closing `---` line is missing"),
        ("---\nactive: maybe\n---\n", "`active` must be true or false, not `maybe`"),
        ("---\nactive: true\ncurrent_round: many\n---\n", "`current_round` is not a number: many"),
        ("\u{0}\u{1}binary", ""),
    ] {
        let problem = StateFile::parse_state(file_text).unwrap_err();
        assert!(problem.contains(expected_reason), "{file_text:?}: {problem}");
    }
    let broken = StateFile::parse_state("# one\n---\nactive: true\n\tx: [\n---\n").unwrap_err();
    assert!(broken.starts_with("line 3"), "{broken}");
}
