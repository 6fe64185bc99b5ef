//! Finds the question or the menu with which an agent ended its answer.

use tribunal_bmad::menu::{Menu, MenuChoice, MenuContext, OpenQuestion, detect_menus};
use tribunal_engine::text::truncate_chars;
use tribunal_workflows::tasks::{
    brief::AnswerContent,
    instructions::{AgentQuestion, QuestionOption},
};

/// The most characters that are kept of a question.
const MAX_QUESTION_CHARS: usize = 2_000;

/// Turns a text that ends with a question or a menu into that question. Any other text stays what it is.
pub(super) fn read_question(answer_text: &str, content: AnswerContent) -> AnswerContent {
    let AnswerContent::Text { text } = content else { return content };
    // The whole answer is searched: a menu at the end of a long answer is not in the part of the text that is kept.
    let mut detection = detect_menus(answer_text, &MenuContext::default());
    // The agent waits for what it asked last.
    let (menu, question) = (detection.menus.pop(), detection.questions.pop());
    let is_menu_last =
        menu.as_ref().is_some_and(|menu| question.as_ref().is_none_or(|question| question.line < menu.lines.end));
    let (question, choices) = match (menu, question) {
        (Some(menu), _) if is_menu_last => (menu_text(answer_text, &menu), menu.options),
        (_, Some(OpenQuestion { text: question, choices, .. })) => (question, choices),
        (_, None) => return AnswerContent::Text { text },
    };
    let options = choices.into_iter().map(|MenuChoice { key, label, .. }| QuestionOption { key, label }).collect();
    let question = truncate_chars(&question, MAX_QUESTION_CHARS);
    AnswerContent::Question(Box::new(AgentQuestion { question, options, text }))
}

/// Returns the lines of a menu.
fn menu_text(answer_text: &str, menu: &Menu) -> String {
    let menu_lines = answer_text.lines().skip(menu.lines.start.saturating_sub(1)).take(menu.lines.len());
    menu_lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(answer_text: &str) -> AnswerContent {
        read_question(answer_text, AnswerContent::Text { text: answer_text.to_string() })
    }

    #[test]
    fn a_menu_at_the_end_is_a_question_with_options() {
        let AnswerContent::Question(question) =
            read_text("I read the brief.\n\nWhat next?\n\n[A] Advanced elicitation\n[C] Continue\n")
        else {
            panic!()
        };
        let keys: Vec<&str> = question.options.iter().map(|option| option.key.as_str()).collect();
        assert_eq!(keys, ["A", "C"]);
        assert_eq!(question.question, "[A] Advanced elicitation\n[C] Continue");
        assert!(question.text.starts_with("I read the brief."));
    }

    #[test]
    fn a_question_in_prose_has_no_options() {
        let AnswerContent::Question(question) =
            read_text("The story names two limits.\n\nWhich of the two limits shall hold?\n")
        else {
            panic!()
        };
        assert!(question.question.contains("Which of the two limits shall hold?"), "{question:?}");
        assert_eq!(question.options, []);
    }

    #[test]
    fn a_statement_stays_text() {
        let text = "The story is written.";
        assert_eq!(read_text(text), AnswerContent::Text { text: text.into() });
        let unreadable = AnswerContent::Unreadable { message: "the answer is empty".into() };
        assert_eq!(read_question("", unreadable.clone()), unreadable);
    }
}
