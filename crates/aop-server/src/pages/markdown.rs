//! Markdown of agents as HTML that can do nothing but be read: no raw HTML, no images (a page makes no requests
//! elsewhere), links only to the web and to mail, and those tell the other side nothing. A text of which Markdown would
//! swallow words is shown as it was written instead. What asks for a permission or for a risk to be taken is no Markdown:
//! people allow what they see, so they see every sign of it.

use aop_kernel::log::one_line;
use aop_kernel::question::QuestionType;
use aop_kernel::signs::visible;
use pulldown_cmark::{
    Alignment, CodeBlockKind, CowStr, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd, html,
};
use std::ops::Range;

/// What comes behind so much of a text is shown as it was written.
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
    let (source, rest) = text.split_at(text.floor_char_boundary(LONGEST));
    let read = Read::of(source);
    let mut page = String::with_capacity(text.len() + text.len() / 4);
    if read.is_whole {
        let mut taming = Taming::default();
        html::push_html(&mut page, read.events.into_iter().map(|(event, number)| taming.tame(event, number)));
    } else {
        page.push_str(&as_written(source));
    }
    if !rest.is_empty() {
        page.push_str("<p><em>The text goes on as it was written:</em></p>");
        page.push_str(&as_written(rest));
    }
    page
}

/// The words alone, on one line, for lists.
fn plain(text: &str) -> String {
    let source = text.get(..text.floor_char_boundary(2_000)).unwrap_or_default();
    let read = Read::of(source);
    if !read.is_whole {
        return one_line(source);
    }
    let mut words = String::new();
    for (event, number) in &read.events {
        if let Some(number) = number {
            words.push_str(&format!("{}. ", number.written));
        }
        match said(event) {
            Some(text) => words.push_str(text),
            None => words.push_str(if parts(event) { " " } else { "" }),
        }
    }
    one_line(&words)
}

/// Sign by sign as far as the lines go.
fn as_written(text: &str) -> String {
    // A browser drops the first line break of the element.
    format!("<pre class=\"exact\">\n{}</pre>", escaped(text))
}

/// The number of an item.
#[derive(Clone, Copy)]
struct Number {
    written: u64,
    /// The one that a browser would give it.
    counted: u64,
}

/// A text as Markdown reads it.
struct Read<'s> {
    /// With the number where an item of a numbered list begins.
    events: Vec<(Event<'s>, Option<Number>)>,
    /// Whether these say all that the text does. Markdown drops the definition of a link that nothing refers to, the cells
    /// that a table has no column for, and a text that is nothing but a rule or a picture without a name.
    is_whole: bool,
}

impl<'s> Read<'s> {
    fn of(source: &'s str) -> Self {
        let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
        let mut parser = Parser::new_ext(source, options).into_offset_iter();
        let (mut events, mut shown, mut says) = (Vec::new(), Vec::new(), false);
        let mut lists: Vec<Option<u64>> = Vec::new();
        for (event, place) in parser.by_ref() {
            says |= said(&event).is_some_and(|words| !words.trim().is_empty());
            let mut number = None;
            match &event {
                Event::Start(Tag::List(first)) => lists.push(*first),
                Event::End(TagEnd::List(_)) => drop(lists.pop()),
                Event::Start(Tag::Item) => {
                    if let (Some(Some(next)), Some((written, marker))) =
                        (lists.last_mut(), marker(source, &place))
                    {
                        number = Some(Number { written, counted: *next });
                        *next = written.saturating_add(1);
                        shown.push(marker);
                    }
                }
                other => shown.extend(shows(other, place, source)),
            }
            events.push((event, number));
        }
        // Whatever refers to a definition shows what it defines.
        let definitions = parser.reference_definitions();
        for (event, _) in &events {
            if let Event::Start(Tag::Link { id, .. } | Tag::Image { id, .. }) = event {
                shown.extend(definitions.get(id).map(|definition| definition.span.clone()));
            }
        }
        shown.sort_by_key(|place| place.start);
        let mut end = 0;
        let mut is_whole = says;
        for place in shown {
            is_whole &= !source.get(end..place.start).is_some_and(has_words);
            end = end.max(place.end);
        }
        is_whole &= !source.get(end..).is_some_and(has_words);
        Read { events, is_whole }
    }
}

/// Where a text is shown by an event, of which its parts may show the same again.
fn shows(event: &Event<'_>, place: Range<usize>, source: &str) -> Option<Range<usize>> {
    match event {
        Event::Text(_)
        | Event::Code(_)
        | Event::Html(_)
        | Event::InlineHtml(_)
        | Event::TaskListMarker(_) => Some(place),
        // With the address and the title.
        Event::Start(Tag::Link { .. } | Tag::Image { .. }) => Some(place),
        // The name of a language says nothing that the code does not; more than a name may.
        Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) if !info.contains(char::is_whitespace) => {
            let fence = source.get(place.clone())?.lines().next()?.len();
            Some(place.start..place.start + fence)
        }
        _ => None,
    }
}

/// The number that an item begins with, and where it stands.
fn marker(source: &str, item: &Range<usize>) -> Option<(u64, Range<usize>)> {
    let text = source.get(item.clone())?;
    let start = item.start + (text.len() - text.trim_start().len());
    let digits = text.trim_start().bytes().take_while(u8::is_ascii_digit).count();
    let marker = start..start + digits;
    Some((source.get(marker.clone())?.parse().ok()?, marker))
}

/// Whether a text has signs other than those that Markdown is written with.
fn has_words(text: &str) -> bool {
    text.contains(|sign: char| !sign.is_whitespace() && !sign.is_ascii_punctuation())
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

/// Takes everything out of events that could do more than be read.
#[derive(Default)]
struct Taming {
    /// How the links and pictures end that are open.
    ends: Vec<Event<'static>>,
}

impl Taming {
    fn tame<'a>(&mut self, event: Event<'a>, number: Option<Number>) -> Event<'a> {
        match event {
            Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
            Event::Start(Tag::Link { link_type, dest_url, title, .. }) => {
                let is_bare = matches!(link_type, LinkType::Autolink | LinkType::Email);
                if leads_out(&dest_url) {
                    let title =
                        if title.is_empty() { String::new() } else { format!(" ({})", escaped(&title)) };
                    self.ends.push(Event::InlineHtml(format!("</a>{title}").into()));
                    return Event::InlineHtml(opened(&dest_url));
                }
                self.ends.push(Event::Text(
                    if is_bare { "]".to_owned() } else { ended(&dest_url, &title) }.into(),
                ));
                Event::Text("[".into())
            }
            // The words stay, the picture is not fetched.
            Event::Start(Tag::Image { dest_url, title, .. }) => {
                self.ends.push(Event::Text(ended(&dest_url, &title).into()));
                Event::Text("[image: ".into())
            }
            Event::End(TagEnd::Link | TagEnd::Image) => self.ends.pop().unwrap_or(Event::Text("]".into())),
            // People refer to an item by its number.
            Event::Start(Tag::Item) => match number.filter(|number| number.written != number.counted) {
                Some(number) => Event::InlineHtml(format!("<li value=\"{}\">", number.written).into()),
                None => Event::Start(Tag::Item),
            },
            other => plainer(other),
        }
    }
}

/// How a link ends that nobody can follow.
fn ended(address: &str, title: &str) -> String {
    if title.is_empty() { format!("]({address})") } else { format!("]({address} “{title}”)") }
}

/// The same with less of a look of its own.
fn plainer(event: Event<'_>) -> Event<'_> {
    match event {
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
            assert_eq!(render(text), as_written(text));
        }
        assert_eq!(render("`a`"), "<p><code>a</code></p>\n");
    }

    #[test]
    fn no_word_of_a_text_is_swallowed() {
        for text in [
            "Which database?\n\n[1]: PostgreSQL\n[2]: SQLite",
            "[1]: a\n[1]: b\n\nsee [1]",
            "| a |\n|---|\n| 1 | and drop it |",
            "```sh and delete the backups\nls\n```",
        ] {
            assert_eq!(render(text), as_written(text));
            assert_eq!(plain(text), one_line(text));
        }
        let shown =
            render("[ours](src/main.rs), [all][y], ![a](b.png \"t\")\n\n[y]: https://example.org 'or not'");
        for said in ["[ours](src/main.rs)", ">all</a> (or not)", "[image: a](b.png “t”)"] {
            assert!(shown.contains(said), "{said}: {shown}");
        }
    }

    #[test]
    fn what_markdown_only_marks_is_shown_without_the_marks() {
        for (text, shown) in [
            ("A [b](https://example.org) `c` &amp; *d* \\* <i>e</i>\n===\n\n> f\n\n---\n", "<h3>A <a"),
            ("| a | b |\n|:--|--:|\n| 1 |\n\n\ttab", "<table>"),
            ("```rust\r\nlet\r\n```\r\n\r\n~~~\r\nx\r\n~~~", "let"),
            ("[x][Y] <https://example.org>\n\n[y]: https://example.org", "<p><a"),
            ("> 1. a\n>\n>    - [x] b\n> 2. c", "<blockquote>"),
        ] {
            let page = render(text);
            assert!(page.contains(shown) && !page.contains("<pre class=\"exact\">"), "{text}: {page}");
        }
    }

    #[test]
    fn the_items_of_a_list_have_the_numbers_that_were_written() {
        let shown = render("2. two\n1. one\n2. again");
        assert_eq!(
            shown,
            "<ol start=\"2\">\n<li>two</li>\n<li value=\"1\">one</li>\n<li>again</li>\n</ol>\n"
        );
        assert_eq!(render("1. a\n2. b"), "<ol>\n<li>a</li>\n<li>b</li>\n</ol>\n");
        assert_eq!(plain("Which?\n\n2. two\n1. one"), "Which? 2. two 1. one");
    }

    #[test]
    fn a_huge_text_is_shown_to_its_end() {
        let shown = render(&format!("{}*the* <end>", "ä ".repeat(60_000)));
        assert!(shown.contains("goes on as it was written") && shown.ends_with("*the* &lt;end&gt;</pre>"));
    }
}
