//! The rules of menus as tables: what is a menu, what is none and why, what an option means, what is a question.

use proptest::prelude::*;

use super::*;

const APC: &str =
    "[A] Advanced Elicitation - dig deeper\n[P] Party Mode - other views\n[C] Continue - save it and go on\n";

fn detect_in(message_text: &str) -> MenuDetection {
    detect_menus(message_text, &MenuContext::default())
}

/// Renders the last menu of a text: `vertical 100 A:advanced elicitation C:continue`.
fn render_last_menu(message_text: &str) -> String {
    let detection = detect_in(message_text);
    let menu =
        detection.menus.last().unwrap_or_else(|| panic!("no menu in {message_text:?}: {:?}", detection.rejected));
    let rendered_options: Vec<String> =
        menu.options.iter().map(|option| format!("{}:{}", option.key, option.meaning.as_str())).collect();
    format!("{:?} {} {}", menu.shape, menu.score, rendered_options.join(" ")).to_lowercase()
}

fn refusals_of(message_text: &str) -> Vec<MenuRefusal> {
    let detection = detect_in(message_text);
    assert_eq!(detection.menus, [], "{message_text:?}");
    detection.rejected.first().map(|rejected| rejected.because.clone()).unwrap_or_default()
}

#[test]
fn every_menu_shape_is_recognized() {
    for (message_text, expected) in [
        (APC, "vertical 100 a:advanced elicitation p:party c:continue"),
        (
            "**Select an Option:** [A] Advanced Elicitation [P] Party Mode [C] Continue to Scope (Step 2 of 9)",
            "horizontal 100 a:advanced elicitation p:party c:continue",
        ),
        ("Next?\n\n[A] [P] [C]", "horizontal 100 a:advanced elicitation p:party c:continue"),
        ("[1] Fix it\n[2] By hand\n[3] Abort", "numbered 100 1:fix 2:by hand 3:exit"),
        ("Once more? [Y][V][N]", "iteration 100 y:yes v: n:no"),
        ("[Y] Yes, again\n[V] View it\n[N] No", "iteration 100 y:yes v:view it n:no"),
        ("[E] Exit Party Mode - leave the talk", "exit 100 e:exit"),
        ("Please select: [C]reate / [E]dit / [V]alidate", "glued 100 c:create e:edit v:validate"),
        ("**[S]kip** - go on\n**[A]dvanced** - dig", "glued 100 s:skip a:advanced elicitation"),
        (
            "[a]Advanced Elicitation/[c]Continue/[p]Party-Mode/[y]YOLO",
            "horizontal 100 a:advanced elicitation c:continue p:party y:yolo",
        ),
        ("Seen it all. Continue [c] or Edit [e]?", "trailing 100 c:continue e:edit"),
        ("Options: Approve [a], Edit [e], Skip [s]", "trailing 100 a:approve e:edit s:skip"),
        (
            "**[t] Plan first** - a spec, then code\n**[e] Execute directly** - now",
            "vertical 100 t:plan first e:execute directly",
        ),
        ("I am done: `[A] Approve` | `[E] Edit`", "horizontal 100 a:approve e:edit"),
        ("- [C] Continue\n- [X] Exit", "vertical 100 c:continue x:exit"),
        ("[A] Elicitation\n\n[P] Party\n\n[C] Continue", "vertical 100 a:advanced elicitation p:party c:continue"),
        (
            "What should I do with these?\n\n1. **Fix them** - all\n2. **Keep** - as items\n\nChoose [1], [2], or name one:",
            "numbered 100 1:fix 2:keep",
        ),
        (
            "Choose a number (1-2), [r] to Reshuffle, [a] List All, or [x] to Proceed:\n\n1. Five whys\n2. Red team\n",
            "elicitation 100 1:five whys 2:red team r:reshuffle a:list all x:continue",
        ),
        ("[Q] Quail\n[Z] Zebra", "vertical 80 q:quail z:zebra"),
        (
            "The spec is ready.\n\n- **Approve and continue** — build it now.\n- **Approve and stop** — build it \
             later.\n- **Review spec** — discuss it first.",
            "named 100 approve and continue:approve approve and stop:approve review spec:review spec",
        ),
        (
            "* **Split** – the first goal only\n* **Keep all goals** – accept the risks\n\nI recommend the first.",
            "named 100 split:split keep all goals:keep all goals",
        ),
        (
            "Which way?\n\n- **Fast path** — I ask once.\n  Then I write.\n- **Coaching path** — section by section.",
            "named 100 fast path:fast path coaching path:coaching path",
        ),
        (
            "3 patches.\n\n1. **Apply every patch** — now\n2. **Leave as action items**\n",
            "numbered 100 1:apply every patch 2:leave as action items",
        ),
    ] {
        assert_eq!(render_last_menu(message_text), expected, "{message_text}");
    }
}

#[test]
fn a_summary_with_bold_words_is_no_menu() {
    for message_text in [
        "Done:\n\n- **Tests** — 12 pass\n- **Files** — 3 changed",
        "- **Review** — no findings\n- **Commit** — abc123",
        "- **Skip:** nothing\n- **Continue:** yes",
        "Changes:\n\n1. **Fix the parser** — it panicked\n2. **Run the tests** — they pass",
        "- **Approve** — it\n- **Edit** — it\n\nI approved it.\nThen I built it.\nAll tests pass.",
        "- **Continue** — the only one",
        "```\n- **Approve** — it\n- **Edit** — it\n```",
        "> - **Approve** — it\n> - **Edit** — it",
    ] {
        assert_eq!(detect_in(message_text).menus, [], "{message_text:?}");
    }
}

#[test]
fn a_false_menu_is_rejected_with_its_reason() {
    let after_lead = |lead: &str| format!("{lead}\n\n{APC}");
    for (message_text, expected) in [
        (&*format!("```\n{APC}```\n"), &[MenuRefusal::Code][..]),
        (&*format!("<!--\n{APC}-->\n"), &[MenuRefusal::Comment]),
        (&*format!("---\n{APC}---\n"), &[MenuRefusal::FrontMatter]),
        ("> [A] Add item\n> [B] Remove item\n", &[MenuRefusal::Quote]),
        (&*after_lead("Example:"), &[MenuRefusal::Example]),
        (&*after_lead("**Sample menu:**"), &[MenuRefusal::Example]),
        (&*after_lead("### Template"), &[MenuRefusal::Example]),
        (&*after_lead("Output:\n\nSelect an option:"), &[MenuRefusal::Example]),
        (&*after_lead("For example:"), &[MenuRefusal::Example]),
        ("Example: [A] Advanced Elicitation [C] Continue", &[MenuRefusal::Example]),
        ("[A](a.md) [B](b.md)", &[MenuRefusal::Link]),
        ("[1]: https://example.org\n", &[MenuRefusal::OneOption, MenuRefusal::Footnote]),
        ("- [x] Tests written\n- [x] Docs written\n", &[MenuRefusal::Checkbox]),
        ("Length: [X] words across [Y] sections", &[MenuRefusal::Placeholder]),
        ("**Select:** [A] [menu item A] [P] [menu item P]", &[MenuRefusal::Placeholder]),
        ("We are combining [A] with [B] for once.", &[MenuRefusal::Sentence]),
        ("As shown in [1] and [2] before.", &[MenuRefusal::Sentence]),
        ("- Ways out ([t] or [w]): none", &[MenuRefusal::Sentence]),
        ("**Select:** [A] Here [A] There", &[MenuRefusal::SameKeyTwice]),
        ("- **[a]**: Load the task\n- **[c]**: Load the next step", &[MenuRefusal::Instruction]),
        ("[C] Continue - save this and go on", &[MenuRefusal::OneOption]),
        ("[E] Edit it", &[MenuRefusal::OneOption]),
    ] {
        assert_eq!(refusals_of(message_text), expected, "{message_text}");
    }
}

#[test]
fn text_without_menu_structure_is_not_mentioned() {
    for message_text in [
        "",
        "See [the plan](plan.md) and [src/main.rs:12].",
        "- [ ] one\n- [ ] two",
        "Text.[^1]\n\n[^1]: Note.",
        "let x = rows[1][2];",
        "The user selects [C] to go on.",
        "✅ [C] continue option presented",
        "`steps: [1]`",
        "1. First I read it.\n2. Then I wrote it.\n\nAll done.",
        "[A",
        "]A[",
        "[[A]] [[B]]",
    ] {
        assert_eq!(detect_in(message_text), MenuDetection::default(), "{message_text}");
    }
}

#[test]
fn an_example_ends_where_other_text_begins() {
    let message_text = format!("Output:\n\n```\n3 files\n```\n\nAll written.\n\n{APC}");
    assert!(render_last_menu(&message_text).starts_with("vertical 100"));
    let sentence = format!("I have changed the example:\n{APC}");
    assert!(render_last_menu(&sentence).starts_with("vertical 100"), "a sentence that ends with the word is no mark");
}

#[test]
fn the_score_adds_up() {
    let followed_by = |lines: usize| format!("{APC}{}", "More of it.\n".repeat(lines));
    for (message_text, score) in [
        (APC.to_string(), 100),
        (followed_by(5), 100),
        (followed_by(6), 90),
        (followed_by(19), 90),
        (format!("{}\n\n", followed_by(19)), 90),
    ] {
        assert_eq!(detect_in(&message_text).menus.last().map(|menu| menu.score), Some(score), "{message_text}");
    }
    let far_from_end = detect_in(&followed_by(20));
    assert_eq!(far_from_end.menus, []);
    assert_eq!(far_from_end.rejected[0].because, [MenuRefusal::Score]);
    let points: Vec<i32> = far_from_end.rejected[0].menu.reasons.iter().map(|reason| reason.points).collect();
    assert_eq!((far_from_end.rejected[0].menu.score, points), (60, vec![40, 0, 20, 0]));
    let table = "| [A] | Advanced Elicitation |\n| [C] | Continue |\n";
    assert_eq!(detect_in(table).menus.last().map(|menu| menu.score), Some(90));
}

#[test]
fn an_option_means_what_its_label_says() {
    for (label, meaning) in [
        ("Continue to Design", ChoiceMeaning::Continue),
        ("Yes, Continue to Discovery", ChoiceMeaning::Continue),
        ("Complete Workflow", ChoiceMeaning::Continue),
        ("Proceed", ChoiceMeaning::Continue),
        ("Exit", ChoiceMeaning::Exit),
        ("Save & Exit", ChoiceMeaning::Exit),
        ("Exit Party Mode", ChoiceMeaning::Exit),
        ("Done", ChoiceMeaning::Exit),
        ("Skip this step and move to Innovation", ChoiceMeaning::Skip),
        ("Advanced Elicitation", ChoiceMeaning::Advanced),
        ("Party-Mode", ChoiceMeaning::Party),
        ("YOLO the rest", ChoiceMeaning::Yolo),
        ("Back to the list", ChoiceMeaning::Back),
        ("Accept", ChoiceMeaning::Approve),
        ("Edit As-Is", ChoiceMeaning::Edit),
        ("Fix Findings", ChoiceMeaning::Fix),
        ("Apply Automated Fixes", ChoiceMeaning::Fix),
        ("Run Full Validation", ChoiceMeaning::Validate),
        ("Yes, pick up where I left off", ChoiceMeaning::Yes),
        ("No, archive it", ChoiceMeaning::No),
    ] {
        assert_eq!(ChoiceMeaning::from_label(label), meaning, "{label}");
    }
    let others =
        ["Convert to BMAD Format", "Clarify", "Manual Review", "Move to archive", "Leave as action items", "Notes"];
    for label in others {
        assert_eq!(ChoiceMeaning::from_label(label), ChoiceMeaning::Other(label.into()));
    }
    // The same key has three meanings.
    assert_eq!(
        render_last_menu("[A] Parity Check\n[B] Validate As-Is\n[C] Exit"),
        "vertical 100 a:parity check b:validate c:exit"
    );
}

#[test]
fn text_under_review_offers_no_menu() {
    let message_text = format!("intro\n{APC}outro\n");
    // A range that ends before it begins is empty.
    let reviewed_range = |range: Range<usize>| MenuContext { reviewed_lines: vec![range], ..MenuContext::default() };
    for (range, expected) in
        [(2..5, 0), (4..5, 0), (1..2, 1), (5..9, 1), (0..0, 1), (Range { start: 7, end: 3 }, 1), (0..usize::MAX, 0)]
    {
        assert_eq!(detect_menus(&message_text, &reviewed_range(range.clone())).menus.len(), expected, "{range:?}");
    }
    let fenced = format!("<document>\n{APC}</document>\n\n[C] Continue\n[X] Exit\n");
    let fences = vec![("<document>".to_string(), "</document>".to_string())];
    let detection = detect_menus(&fenced, &MenuContext { review_fences: fences, ..MenuContext::default() });
    assert_eq!(detection.rejected[0].because, [MenuRefusal::Reviewed]);
    assert_eq!(detection.menus.len(), 1);
    assert_eq!(detection.menus[0].lines, 7..9);
}

#[test]
fn questions_are_distinguished_from_menus() {
    let render_questions = |message_text: &str| {
        let detection = detect_in(message_text);
        assert_eq!(detection.menus, [], "{message_text}");
        let rendered = detection.questions.iter().map(|question| {
            let keys: Vec<&str> = question.choices.iter().map(|choice| choice.key.as_str()).collect();
            format!("{:?} {} {}", question.asked, question.line, keys.join("/"))
        });
        rendered.collect::<Vec<_>>().join(", ")
    };
    for (message_text, expected) in [
        ("<ask>Which epic is meant?</ask>", "Tag 1 "),
        ("**Mary asks: who pays for it?**\n\n_[Awaiting user response...]_", "Agent 1 "),
        ("Apply these changes? (y/n/other)", "YesNo 1 y/n/other"),
        ("Shall I? [Yes/No]", "YesNo 1 yes/no"),
        ("Choose option [1], [2], or name a file:", "Key 1 1/2"),
        ("[C] Continue - save this and go on", "Key 1 C"),
        (
            "How would you like to go on? You have a choice:\n\n- **Approve and continue** — now\n\
             - **Approve and stop** — later\n\nOne.\nTwo.\nThree.",
            "Named 1 Approve and continue/Approve and stop",
        ),
        ("> **How would you like it?**\n> 1. **Apply** - all\n> 2. **Walk** - each\n\nI wait.", "Key 2 1/2"),
        ("Done.\n\nWhich database do you use?", "Prose 3 "),
        ("Which database do you use? I took the first.", ""),
        ("> Is this quoted?", ""),
        ("```\nIs this code?\n```", ""),
    ] {
        assert_eq!(render_questions(message_text), expected, "{message_text}");
    }
    let menu_and_question = detect_in(&format!("Shall we go on?\n\n{APC}"));
    assert_eq!(
        (menu_and_question.menus.len(), menu_and_question.questions.len()),
        (1, 0),
        "the prompt of a menu is no question of its own"
    );
}

#[test]
fn only_the_latest_of_many_candidates_are_returned() {
    let lone_keys = "[C] Continue\n".repeat(50_000);
    let detection = detect_in(&lone_keys);
    assert_eq!((detection.rejected.len(), detection.left_out), (200, 49_800));
    let long_row = self::detect_in(&"[A] x ".repeat(100_000)).rejected.remove(0);
    assert_eq!(long_row.because, [MenuRefusal::SameKeyTwice, MenuRefusal::Many]);
    assert_eq!(detection.rejected.last().map(|rejected| rejected.menu.lines.clone()), Some(50_000..50_001));
}

#[test]
fn a_menu_is_found_below_a_byte_order_mark_and_with_any_line_ends() {
    let message_text = format!("\u{feff}{}", APC.replace('\n', "\r\n"));
    assert_eq!(render_last_menu(&message_text), render_last_menu(APC));
    assert_eq!(detect_in(&message_text).menus[0].lines, 1..4);
}

proptest! {
    #[test]
    fn any_text_is_read_without_falling_over(text in "(?s).{0,300}") {
        let _ = detect_in(&text);
    }

    #[test]
    fn what_is_given_is_consistent(
        text in "(?s)(\\[[A-Cx1-3]\\]( (Continue|Exit|to go|option))?|[-*>|] |\n|\n\n|`|```\n|[1-3]\\. |Choose: |\\(y/n\\)|<ask>|é){0,40}"
    ) {
        let found = detect_in(&text);
        let lines = text.lines().count();
        for menu in found.menus.iter().chain(found.rejected.iter().map(|rejected| &rejected.menu)) {
            prop_assert!(menu.lines.start >= 1 && menu.lines.start < menu.lines.end && menu.lines.end <= lines + 1);
            prop_assert!(menu.options.iter().all(|option| menu.lines.contains(&option.line)));
            let sum: i32 = menu.reasons.iter().map(|reason| reason.points).sum();
            prop_assert_eq!(i64::from(menu.score), i64::from(sum.max(0)));
        }
        for menu in &found.menus {
            prop_assert!(menu.score >= MIN_SCORE);
            prop_assert!(menu.options.len() >= 2 || menu.shape == MenuShape::Exit);
        }
        for rejected in &found.rejected {
            prop_assert!(!rejected.because.is_empty());
        }
    }
}

#[test]
fn colours_hide_no_menu_and_footnotes_are_none() {
    let detect_menu = |message_text: &str| detect_menus(message_text, &MenuContext::default());
    let coloured = "\u{1b}[1m[A]\u{1b}[0m Advanced Elicitation\n\u{1b}[36m[P]\u{1b}[0m Party Mode\n\u{1b}[32m[C]\u{1b}[0m Continue\n";
    let uncoloured =
        coloured.replace("\u{1b}[1m", "").replace("\u{1b}[0m", "").replace("\u{1b}[36m", "").replace("\u{1b}[32m", "");
    assert_eq!(detect_menu(coloured), detect_menu(&uncoloured));
    assert_eq!(detect_menu(coloured).menus.len(), 1);
    let footnotes = detect_menu("See both.\n\n[1] https://example.org/a\n[2] https://example.org/b\n");
    assert_eq!(footnotes.menus, []);
    assert!(footnotes.rejected[0].because.contains(&MenuRefusal::Footnote));
}

#[test]
fn the_greeting_of_an_agent_is_a_menu() {
    let greeting = "Hello! I am Amelia, your developer.\n\n1. [MH] Redisplay Menu Help\n2. [CH] Chat with the Agent about anything\n\
                    3. [DS] Write the next story\n4. [DA] Dismiss Agent\n";
    let detection = detect_menus(greeting, &MenuContext::default());
    let keys: Vec<&str> =
        detection.menus.iter().flat_map(|menu| &menu.options).map(|option| option.key.as_str()).collect();
    assert_eq!(keys, ["MH", "CH", "DS", "DA"], "{detection:?}");
    // Words in brackets elsewhere are no keys.
    assert!(
        detect_menus("See [RFC] and [API] for more.\n- [OK] done\n- [NO] not\n", &MenuContext::default())
            .menus
            .is_empty()
    );
}
