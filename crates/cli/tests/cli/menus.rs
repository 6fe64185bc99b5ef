//! `tribunal inspect menu`: which parts of an agent's text are menus, which are not, and why.

use crate::common::Sandbox;

#[test]
fn a_menu_is_shown_with_its_score_and_what_only_looks_like_one_with_why() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "said.md",
        "I have written the section. The page offers:\n\n> [A] Add item\n> [B] Remove item\n\n\
         **Select an option:**\n\n[A] Advanced Elicitation - dig\n[P] Party Mode\n[C] Exit\u{1b}[2J - it ends here\n",
    );
    let ran = sandbox.run(&["inspect", "menu", "said.md"]);
    insta::assert_snapshot!(format!("{}{}exit code {}", ran.out, ran.err, ran.code.unwrap_or(-1)), @r"
    menu in lines 8 to 10, vertical, score 100
      [A] Advanced Elicitation (advanced elicitation)
      [P] Party Mode (party)
      [C] Exit (exit)
       +40 keys in brackets, each with its option
       +30 in the last 20 lines
       +20 a known shape
       +10 no mark against it
    no menu in lines 3 to 4, vertical, score 70
      it is quoted (`>`)
      [A] Add item (other)
      [B] Remove item (other)
       +40 keys in brackets, each with its option
       +30 in the last 20 lines
        +0 a shape that is not known
        +0 marks against it
    exit code 0
    ");
}

#[test]
fn no_menu_is_exit_code_3_and_a_question_is_told() {
    let sandbox = Sandbox::new();
    sandbox.write("lone.md", "Done so far.\n\n[C] Continue - save this and go on\n");
    let ran = sandbox.run(&["inspect", "menu", "lone.md"]);
    insta::assert_snapshot!(format!("{}{}exit code {}", ran.out, ran.err, ran.code.unwrap_or(-1)), @r"
    no menu
    no menu in line 3, lone, score 30
      it has one option; a menu has two
      [C] Continue (continue)
        +0 no structure of a menu
       +30 in the last 20 lines
        +0 a shape that is not known
        +0 marks against it
    question in line 3 (key): [C] Continue - save this and go on
      [C] Continue (continue)
    exit code 3
    ");
    sandbox.write("prose.md", "All is written.\n");
    let ran = sandbox.run(&["inspect", "menu", "prose.md"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(3), "no menu\n"));
    assert_eq!(sandbox.run(&["inspect", "menu", "absent.md"]).code, Some(2));
}
