//! `tribunal inspect menu`: which parts of an agent's text are menus, which are not, and why.

use crate::common::Sandbox;

#[test]
fn a_menu_is_shown_with_its_score_and_a_lookalike_with_the_reason() {
    let sandbox = Sandbox::new();
    sandbox.write_file(
        "said.md",
        "I have written the section. The page offers:\n\n> [A] Add item\n> [B] Remove item\n\n\
         **Select an option:**\n\n[A] Advanced Elicitation - dig\n[P] Party Mode\n[C] Exit\u{1b}[2J - it ends here\n",
    );
    let output = sandbox.run_tribunal(&["inspect", "menu", "said.md"]);
    insta::assert_snapshot!(format!("{}{}exit code {}", output.stdout, output.stderr, output.exit_code.unwrap_or(-1)), @"
    menu on lines 8 to 10, vertical, score 100
      [A] Advanced Elicitation (advanced elicitation)
      [P] Party Mode (party)
      [C] Exit (exit)
       +40 keys in brackets, each with an option
       +30 in the last 20 lines
       +20 known shape
       +10 nothing against it
    not a menu on lines 3 to 4, vertical, score 70
      quoted (`>`)
      [A] Add item (other)
      [B] Remove item (other)
       +40 keys in brackets, each with an option
       +30 in the last 20 lines
        +0 unknown shape
        +0 evidence against it
    exit code 0
    ");
}

#[test]
fn without_a_menu_the_exit_code_is_3_and_questions_are_listed() {
    let sandbox = Sandbox::new();
    sandbox.write_file("lone.md", "Done so far.\n\n[C] Continue - save this and go on\n");
    let output = sandbox.run_tribunal(&["inspect", "menu", "lone.md"]);
    insta::assert_snapshot!(format!("{}{}exit code {}", output.stdout, output.stderr, output.exit_code.unwrap_or(-1)), @"
    no menu
    not a menu on line 3, lone, score 30
      only one option; a menu has at least two
      [C] Continue (continue)
        +0 not structured like a menu
       +30 in the last 20 lines
        +0 unknown shape
        +0 evidence against it
    question on line 3 (key): [C] Continue - save this and go on
      [C] Continue (continue)
    exit code 3
    ");
    sandbox.write_file("prose.md", "All is written.\n");
    let output = sandbox.run_tribunal(&["inspect", "menu", "prose.md"]);
    assert_eq!((output.exit_code, output.stdout.as_str()), (Some(3), "no menu\n"));
    assert_eq!(sandbox.run_tribunal(&["inspect", "menu", "absent.md"]).exit_code, Some(2));
}
