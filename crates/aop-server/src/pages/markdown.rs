//! Markdown of agents as HTML that can do nothing but be read: no raw HTML, no images (a page makes no requests
//! elsewhere), links only to the web and to mail, and those tell the other side nothing. What asks for a permission or
//! for a risk to be taken is no Markdown: people allow what they see, so they see every sign of it.

use aop_kernel::log::one_line;
use aop_kernel::question::QuestionType;
use aop_kernel::signs::visible;
use pulldown_cmark::{Alignment, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

/// Longer texts are cut before they are looked at.
const LONGEST: usize = 64 << 10;

/// What a question of this kind says, as safe HTML.
pub(super) fn asked(kind: QuestionType, text: &str) -> String {
    if kind.grants() {
        // A browser drops the first line break of the element.
        format!("<pre class=\"exact\">\n{}</pre>", escaped(&visible(text)))
    } else {
        render(text)
    }
}

/// The same on one line, for lists.
pub(super) fn asked_in_short(kind: QuestionType, text: &str) -> String {
    if kind.grants() { one_line(&visible(text)) } else { plain(text) }
}

/// The text as safe HTML.
pub(crate) fn render(text: &str) -> String {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let source = text.get(..end).unwrap_or_default();
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let (mut links, mut says) = (Vec::new(), false);
    let safe = Parser::new_ext(source, options).map(|event| {
        says |= said(&event).is_some_and(|words| !words.trim().is_empty());
        tame(event, &mut links)
    });
    let mut page = String::with_capacity(end + end / 4);
    html::push_html(&mut page, safe);
    if !says {
        // A rule, a picture without a name or the address of a link alone leave nothing to read.
        page = format!("<p>{}</p>", escaped(source));
    }
    if end < text.len() {
        page.push_str("<p><em>The text goes on; only its beginning is shown.</em></p>");
    }
    page
}

/// The words alone, on one line, for lists.
fn plain(text: &str) -> String {
    let mut end = text.len().min(2_000);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut words = String::new();
    for event in Parser::new_ext(text.get(..end).unwrap_or_default(), Options::ENABLE_TABLES) {
        match said(&event) {
            Some(text) => words.push_str(text),
            None => words.push_str(if parts(&event) { " " } else { "" }),
        }
    }
    let line = one_line(&words);
    if line.is_empty() { one_line(text) } else { line }
}

/// The words of an event.
fn said<'e>(event: &'e Event<'_>) -> Option<&'e str> {
    match event {
        Event::Text(text) | Event::Code(text) | Event::Html(text) | Event::InlineHtml(text) => Some(text),
        _ => None,
    }
}

/// Whether an event stands between two words.
fn parts(event: &Event<'_>) -> bool {
    matches!(
        event,
        Event::End(
            TagEnd::Paragraph | TagEnd::Item | TagEnd::Heading(_) | TagEnd::CodeBlock | TagEnd::TableCell
        ) | Event::SoftBreak
            | Event::HardBreak
    )
}

/// One event, with everything taken out of it that could do more than be read.
fn tame<'a>(event: Event<'a>, links: &mut Vec<bool>) -> Event<'a> {
    match event {
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        Event::Start(Tag::Link { dest_url, .. }) => {
            let good = leads_out(&dest_url);
            links.push(good);
            if good { Event::InlineHtml(opened(&dest_url)) } else { Event::Text("[".into()) }
        }
        Event::End(TagEnd::Link) => {
            if links.pop().unwrap_or(false) {
                Event::InlineHtml("</a>".into())
            } else {
                Event::Text("]".into())
            }
        }
        // The words stay, the picture is not fetched.
        Event::Start(Tag::Image { .. }) => Event::Text("[image: ".into()),
        Event::End(TagEnd::Image) => Event::Text("]".into()),
        // A box to tick would be a field of the form, and an option for the keys.
        Event::TaskListMarker(done) => Event::Text(if done { "☑ " } else { "☐ " }.into()),
        // Alignment would be an inline style, which the content policy forbids.
        Event::Start(Tag::Table(columns)) => Event::Start(Tag::Table(vec![Alignment::None; columns.len()])),
        // The page has headings of its own above.
        Event::Start(Tag::Heading { level, .. }) => Event::Start(Tag::Heading {
            level: lower(level),
            id: None,
            classes: Vec::new(),
            attrs: Vec::new(),
        }),
        Event::End(TagEnd::Heading(level)) => Event::End(TagEnd::Heading(lower(level))),
        other => other,
    }
}

/// Whether an address may be followed from our pages.
fn leads_out(address: &str) -> bool {
    let lower = address.trim_start().to_ascii_lowercase();
    ["https://", "http://", "mailto:"].iter().any(|scheme| lower.starts_with(scheme))
}

fn opened(address: &str) -> CowStr<'static> {
    let address = escaped(address.trim_start());
    format!("<a rel=\"noopener noreferrer nofollow\" target=\"_blank\" href=\"{address}\">").into()
}

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + 16);
    for sign in text.chars() {
        match sign {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            sign => safe.push(sign),
        }
    }
    safe
}

fn lower(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H3,
        HeadingLevel::H2 => HeadingLevel::H4,
        HeadingLevel::H3 => HeadingLevel::H5,
        HeadingLevel::H4 | HeadingLevel::H5 | HeadingLevel::H6 => HeadingLevel::H6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_html_is_shown_and_never_obeyed() {
        let shown = render("a <script>alert(1)</script> b\n\n<div onclick=x>\n\n<!-- c -->");
        assert!(!shown.contains("<script") && !shown.contains("<div") && !shown.contains("<!--"), "{shown}");
        assert!(shown.contains("&lt;script&gt;"), "{shown}");
    }

    #[test]
    fn links_lead_to_the_web_or_to_mail_and_nowhere_else() {
        for bad in [
            "[x](javascript:alert(1))",
            "[x](JaVaScRiPt:alert(1))",
            "[x](data:text/html,<script>alert(1)</script>)",
            "[x](vbscript:x)",
            "[x](/logout)",
            "[x](//evil.example)",
            "[x]( javascript:alert(1))",
            "[x](&#106;avascript:alert(1))",
            "<javascript:alert(1)>",
            "[x][y]\n\n[y]: javascript:alert(1)",
        ] {
            let shown = render(bad);
            assert!(!shown.contains("<a "), "{bad}: {shown}");
        }
        let shown = render("[x](https://example.org/?a=1&b=\"><script>) <mailto:a@b.c>");
        assert!(shown.contains("rel=\"noopener noreferrer nofollow\""), "{shown}");
        assert!(!shown.contains("<script"), "{shown}");
        assert_eq!(render("<mailto:a@b.c>").matches("href=\"mailto:a@b.c\"").count(), 1);
    }

    #[test]
    fn pictures_are_named_and_not_fetched() {
        let shown = render("![a cat](https://example.org/cat.png \"t\")");
        assert!(!shown.contains("<img") && shown.contains("[image: a cat]"), "{shown}");
    }

    #[test]
    fn a_list_of_tasks_shows_what_is_done_and_has_nothing_to_tick() {
        let shown = render("- [x] backed up\n- [ ] verified");
        assert_eq!(shown, "<ul>\n<li>☑ backed up</li>\n<li>☐ verified</li>\n</ul>\n");
    }

    #[test]
    fn tables_have_no_inline_style_and_headings_stay_below_ours() {
        let shown = render("| a | b |\n|:--|--:|\n| 1 | 2 |\n\n# One\n\n###### Six");
        assert!(shown.contains("<table>") && !shown.contains("style="), "{shown}");
        assert!(shown.contains("<h3>One</h3>") && shown.contains("<h6>Six</h6>"), "{shown}");
    }

    #[test]
    fn the_language_of_a_code_block_cannot_leave_its_attribute() {
        let shown = render("```\"><script>alert(1)</script>\nx\n```");
        assert!(!shown.contains("<script"), "{shown}");
    }

    #[test]
    fn a_permission_or_a_risk_is_shown_sign_by_sign() {
        let command = "Allow the engine to use Bash?\n\nrm -rf a/*.o b/*.o\n# __main__\n\n[x]: $(touch${IFS}/tmp/\u{200b}boo)";
        for kind in [QuestionType::PermissionOverride, QuestionType::RiskAck] {
            let shown = asked(kind, command);
            assert!(
                shown.contains(
                    "\n\nrm -rf a/*.o b/*.o\n# __main__\n\n[x]: $(touch${IFS}/tmp/⟨U+200B⟩boo)</pre>"
                ),
                "{shown}"
            );
            assert!(!asked(kind, "<b>\"&'").contains("<b>"));
            assert_eq!(asked_in_short(kind, "a *b*\n\n[x]: y"), "a *b* [x]: y");
        }
        assert!(asked(QuestionType::Clarification, "a *b*").contains("<em>b</em>"));
        assert_eq!(asked_in_short(QuestionType::ExternalDecision, "a *b*"), "a b");
    }

    #[test]
    fn a_list_shows_the_words_without_their_marks() {
        assert_eq!(plain("Which **db**?\n\n- `a`\n- b\n\n<b>x</b>"), "Which db? a b <b>x</b>");
    }

    #[test]
    fn a_text_of_which_markdown_leaves_nothing_is_shown_as_it_was_written() {
        for text in ["---", "[1]: http://example.org", "![](http://x/y.png)", "> "] {
            assert_eq!(plain(text), text.trim());
            assert_eq!(render(text), format!("<p>{}</p>", escaped(text)));
        }
        assert_eq!(render("`a`"), "<p><code>a</code></p>\n");
    }

    #[test]
    fn a_huge_text_is_cut_and_says_so() {
        let shown = render(&"ä ".repeat(60_000));
        assert!(shown.len() < 140_000 && shown.contains("only its beginning is shown"));
    }
}
