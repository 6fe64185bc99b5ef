//! The rules of menus as tables: what is a menu, what is none and why, what an option means, what is a question.

use proptest::prelude::*;

use super::*;

const APC: &str =
    "[A] Advanced Elicitation - dig deeper\n[P] Party Mode - other views\n[C] Continue - save it and go on\n";

fn found(text: &str) -> Detection {
    detect(text, &Context::default())
}

/// Renders the last menu of a text: `vertical 100 A:advanced elicitation C:continue`.
fn last(text: &str) -> String {
    let found = found(text);
    let menu = found.menus.last().unwrap_or_else(|| panic!("no menu in {text:?}: {:?}", found.rejected));
    let options: Vec<String> =
        menu.options.iter().map(|option| format!("{}:{}", option.key, option.meaning.as_str())).collect();
    format!("{:?} {} {}", menu.shape, menu.score, options.join(" ")).to_lowercase()
}

fn refused(text: &str) -> Vec<Refusal> {
    let found = found(text);
    assert_eq!(found.menus, [], "{text:?}");
    found.rejected.first().map(|rejected| rejected.because.clone()).unwrap_or_default()
}

#[test]
fn every_shape_is_known() {
    for (text, menu) in [
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
        (
            "[A] Elicitation\n\n[P] Party\n\n[C] Continue",
            "vertical 100 a:advanced elicitation p:party c:continue",
        ),
        (
            "What should I do with these?\n\n1. **Fix them** - all\n2. **Keep** - as items\n\nChoose [1], [2], or name one:",
            "numbered 100 1:fix 2:keep",
        ),
        (
            "Choose a number (1-2), [r] to Reshuffle, [a] List All, or [x] to Proceed:\n\n1. Five whys\n2. Red team\n",
            "elicitation 100 1:five whys 2:red team r:reshuffle a:list all x:continue",
        ),
        ("[Q] Quail\n[Z] Zebra", "vertical 80 q:quail z:zebra"),
    ] {
        assert_eq!(last(text), menu, "{text}");
    }
}

#[test]
fn what_only_looks_like_a_menu_is_turned_down_by_name() {
    let example = |lead: &str| format!("{lead}\n\n{APC}");
    for (text, because) in [
        (&*format!("```\n{APC}```\n"), &[Refusal::Code][..]),
        (&*format!("<!--\n{APC}-->\n"), &[Refusal::Comment]),
        (&*format!("---\n{APC}---\n"), &[Refusal::FrontMatter]),
        ("> [A] Add item\n> [B] Remove item\n", &[Refusal::Quote]),
        (&*example("Example:"), &[Refusal::Example]),
        (&*example("**Sample menu:**"), &[Refusal::Example]),
        (&*example("### Template"), &[Refusal::Example]),
        (&*example("Output:\n\nSelect an option:"), &[Refusal::Example]),
        (&*example("For example:"), &[Refusal::Example]),
        ("Example: [A] Advanced Elicitation [C] Continue", &[Refusal::Example]),
        ("[A](a.md) [B](b.md)", &[Refusal::Link]),
        ("[1]: https://example.org\n", &[Refusal::OneOption, Refusal::Footnote]),
        ("- [x] Tests written\n- [x] Docs written\n", &[Refusal::Checkbox]),
        ("Length: [X] words across [Y] sections", &[Refusal::Placeholder]),
        ("**Select:** [A] [menu item A] [P] [menu item P]", &[Refusal::Placeholder]),
        ("We are combining [A] with [B] for once.", &[Refusal::Sentence]),
        ("As shown in [1] and [2] before.", &[Refusal::Sentence]),
        ("- Ways out ([t] or [w]): none", &[Refusal::Sentence]),
        ("**Select:** [A] Here [A] There", &[Refusal::SameKeyTwice]),
        ("- **[a]**: Load the task\n- **[c]**: Load the next step", &[Refusal::Instruction]),
        ("[C] Continue - save this and go on", &[Refusal::OneOption]),
        ("[E] Edit it", &[Refusal::OneOption]),
    ] {
        assert_eq!(refused(text), because, "{text}");
    }
}

#[test]
fn what_is_not_even_like_one_is_not_mentioned() {
    for text in [
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
        assert_eq!(found(text), Detection::default(), "{text}");
    }
}

#[test]
fn an_example_ends_where_other_text_begins() {
    let text = format!("Output:\n\n```\n3 files\n```\n\nAll written.\n\n{APC}");
    assert!(last(&text).starts_with("vertical 100"));
    let sentence = format!("I have changed the example:\n{APC}");
    assert!(last(&sentence).starts_with("vertical 100"), "a sentence that ends with the word is no mark");
}

#[test]
fn the_score_adds_up() {
    let after = |lines: usize| format!("{APC}{}", "More of it.\n".repeat(lines));
    for (text, score) in [
        (APC.to_string(), 100),
        (after(5), 100),
        (after(6), 90),
        (after(19), 90),
        (format!("{}\n\n", after(19)), 90),
    ] {
        assert_eq!(found(&text).menus.last().map(|menu| menu.score), Some(score), "{text}");
    }
    let far = found(&after(20));
    assert_eq!(far.menus, []);
    assert_eq!(far.rejected[0].because, [Refusal::Score]);
    let reasons: Vec<i32> = far.rejected[0].menu.reasons.iter().map(|reason| reason.points).collect();
    assert_eq!((far.rejected[0].menu.score, reasons), (60, vec![40, 0, 20, 0]));
    let table = "| [A] | Advanced Elicitation |\n| [C] | Continue |\n";
    assert_eq!(found(table).menus.last().map(|menu| menu.score), Some(90));
}

#[test]
fn an_option_means_what_its_label_says() {
    for (label, meaning) in [
        ("Continue to Design", Meaning::Continue),
        ("Yes, Continue to Discovery", Meaning::Continue),
        ("Complete Workflow", Meaning::Continue),
        ("Proceed", Meaning::Continue),
        ("Exit", Meaning::Exit),
        ("Save & Exit", Meaning::Exit),
        ("Exit Party Mode", Meaning::Exit),
        ("Done", Meaning::Exit),
        ("Skip this step and move to Innovation", Meaning::Skip),
        ("Advanced Elicitation", Meaning::Advanced),
        ("Party-Mode", Meaning::Party),
        ("YOLO the rest", Meaning::Yolo),
        ("Back to the list", Meaning::Back),
        ("Accept", Meaning::Approve),
        ("Edit As-Is", Meaning::Edit),
        ("Fix Findings", Meaning::Fix),
        ("Apply Automated Fixes", Meaning::Fix),
        ("Run Full Validation", Meaning::Validate),
        ("Yes, pick up where I left off", Meaning::Yes),
        ("No, archive it", Meaning::No),
    ] {
        assert_eq!(Meaning::of(label), meaning, "{label}");
    }
    let others = [
        "Convert to BMAD Format",
        "Clarify",
        "Manual Review",
        "Move to archive",
        "Leave as action items",
        "Notes",
    ];
    for label in others {
        assert_eq!(Meaning::of(label), Meaning::Other(label.into()));
    }
    // The same key has three meanings.
    assert_eq!(
        last("[A] Parity Check\n[B] Validate As-Is\n[C] Exit"),
        "vertical 100 a:parity check b:validate c:exit"
    );
}

#[test]
fn what_is_under_review_offers_nothing() {
    let text = format!("intro\n{APC}outro\n");
    // Ranges come from other programs: one that ends before it begins is empty.
    let at = |range: Range<usize>| Context { reviewed: vec![range], ..Context::default() };
    for (range, menus) in [
        (2..5, 0),
        (4..5, 0),
        (1..2, 1),
        (5..9, 1),
        (0..0, 1),
        (Range { start: 7, end: 3 }, 1),
        (0..usize::MAX, 0),
    ] {
        assert_eq!(detect(&text, &at(range.clone())).menus.len(), menus, "{range:?}");
    }
    let fenced = format!("<document>\n{APC}</document>\n\n[C] Continue\n[X] Exit\n");
    let fences = vec![("<document>".to_string(), "</document>".to_string())];
    let found = detect(&fenced, &Context { fences, ..Context::default() });
    assert_eq!(found.rejected[0].because, [Refusal::Reviewed]);
    assert_eq!(found.menus.len(), 1);
    assert_eq!(found.menus[0].lines, 7..9);
}

#[test]
fn a_confirmed_mistake_costs_points_and_fades() {
    let text = "Pick a lens:\n[Q] Quail\n[Z] Zebra\n";
    let mut context = Context::default();
    let menu = detect(text, &context).menus.remove(0);
    let trace = Trace::of(&menu, "Pick a lens:");
    for expected in [75, 70] {
        context.history.mistaken(trace.clone());
        assert_eq!(detect(text, &context).menus[0].score, expected);
    }
    context.history.mistaken(trace.clone());
    let third = detect(text, &context);
    assert_eq!((third.menus.len(), third.rejected[0].menu.score), (0, 65));
    let elsewhere = detect("Go where?\n[C] Continue\n[X] Exit\n", &context);
    assert_eq!(elsewhere.menus[0].score, 100);
    let elsewhere = Trace::of(&elsewhere.menus[0], "Go where?");
    // Ten right detections change nothing, the eleventh takes one point off each mistake.
    for (good, score) in [(10, 65), (1, 68), (1, 71), (3, 80)] {
        (0..good).for_each(|_| context.history.right(&elsewhere));
        let found = detect(text, &context);
        let all = found.menus.iter().chain(found.rejected.iter().map(|rejected| &rejected.menu));
        assert_eq!(all.map(|menu| menu.score).collect::<Vec<_>>(), [score]);
    }
    assert_eq!(context.history.confirmed, []);
    context.history.mistaken(trace.clone());
    context.history.right(&trace);
    assert_eq!(context.history.confirmed[0].good, 0, "a good one in the same context is no proof");
}

#[test]
fn questions_are_told_apart_from_menus() {
    let asked = |text: &str| {
        let found = found(text);
        assert_eq!(found.menus, [], "{text}");
        let drawn = found.questions.iter().map(|question| {
            let keys: Vec<&str> = question.choices.iter().map(|choice| choice.key.as_str()).collect();
            format!("{:?} {} {}", question.asked, question.line, keys.join("/"))
        });
        drawn.collect::<Vec<_>>().join(", ")
    };
    for (text, drawn) in [
        ("<ask>Which epic is meant?</ask>", "Tag 1 "),
        ("**Mary asks: who pays for it?**\n\n_[Awaiting user response...]_", "Agent 1 "),
        ("Apply these changes? (y/n/other)", "YesNo 1 y/n/other"),
        ("Shall I? [Yes/No]", "YesNo 1 yes/no"),
        ("Choose option [1], [2], or name a file:", "Key 1 1/2"),
        ("[C] Continue - save this and go on", "Key 1 C"),
        (
            "How would you like to go on? You have a choice:\n\n- **Approve and continue** — now\n- **Approve and stop** — later\n",
            "Named 1 Approve and continue/Approve and stop",
        ),
        ("> **How would you like it?**\n> 1. **Apply** - all\n> 2. **Walk** - each\n\nI wait.", "Key 2 1/2"),
        ("Done.\n\nWhich database do you use?", "Prose 3 "),
        ("Which database do you use? I took the first.", ""),
        ("> Is this quoted?", ""),
        ("```\nIs this code?\n```", ""),
    ] {
        assert_eq!(asked(text), drawn, "{text}");
    }
    let both = found(&format!("Shall we go on?\n\n{APC}"));
    assert_eq!(
        (both.menus.len(), both.questions.len()),
        (1, 0),
        "the prompt of a menu is no question of its own"
    );
}

#[test]
fn of_many_the_later_ones_are_given() {
    let lone = "[C] Continue\n".repeat(50_000);
    let found = found(&lone);
    assert_eq!((found.rejected.len(), found.left_out), (200, 49_800));
    let row = self::found(&"[A] x ".repeat(100_000)).rejected.remove(0);
    assert_eq!(row.because, [Refusal::SameKeyTwice, Refusal::Many]);
    assert_eq!(found.rejected.last().map(|rejected| rejected.menu.lines.clone()), Some(50_000..50_001));
}

#[test]
fn a_menu_is_found_below_a_byte_order_mark_and_with_any_line_ends() {
    let text = format!("\u{feff}{}", APC.replace('\n', "\r\n"));
    assert_eq!(last(&text), last(APC));
    assert_eq!(found(&text).menus[0].lines, 1..4);
}

proptest! {
    #[test]
    fn any_text_is_read_without_falling_over(text in "(?s).{0,300}") {
        let _ = found(&text);
        let _ = shapes(&text);
    }

    #[test]
    fn what_is_given_is_consistent(
        text in "(?s)(\\[[A-Cx1-3]\\]( (Continue|Exit|to go|option))?|[-*>|] |\n|\n\n|`|```\n|[1-3]\\. |Choose: |\\(y/n\\)|<ask>|é){0,40}"
    ) {
        let found = found(&text);
        let lines = text.lines().count();
        for menu in found.menus.iter().chain(found.rejected.iter().map(|rejected| &rejected.menu)) {
            prop_assert!(menu.lines.start >= 1 && menu.lines.start < menu.lines.end && menu.lines.end <= lines + 1);
            prop_assert!(menu.options.iter().all(|option| menu.lines.contains(&option.line)));
            let sum: i32 = menu.reasons.iter().map(|reason| reason.points).sum();
            prop_assert_eq!(i64::from(menu.score), i64::from(sum.max(0)));
        }
        for menu in &found.menus {
            prop_assert!(menu.score >= ENOUGH);
            prop_assert!(menu.options.len() >= 2 || menu.shape == Shape::Exit);
        }
        for rejected in &found.rejected {
            prop_assert!(!rejected.because.is_empty());
        }
    }
}

#[test]
fn colours_hide_no_menu_and_footnotes_are_none() {
    let found = |text: &str| detect(text, &Context::default());
    let coloured = "\u{1b}[1m[A]\u{1b}[0m Advanced Elicitation\n\u{1b}[36m[P]\u{1b}[0m Party Mode\n\u{1b}[32m[C]\u{1b}[0m Continue\n";
    let plain = coloured
        .replace("\u{1b}[1m", "")
        .replace("\u{1b}[0m", "")
        .replace("\u{1b}[36m", "")
        .replace("\u{1b}[32m", "");
    assert_eq!(found(coloured), found(&plain));
    assert_eq!(found(coloured).menus.len(), 1);
    let notes = found("See both.\n\n[1] https://example.org/a\n[2] https://example.org/b\n");
    assert_eq!(notes.menus, []);
    assert!(notes.rejected[0].because.contains(&Refusal::Footnote));
}
