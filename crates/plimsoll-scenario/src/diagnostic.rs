//! What is wrong, where it was written, and what to write instead.

use std::fmt;
use std::ops::Range;

use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, SourceCode};

use crate::source::Source;

/// One mistake.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// A stable name for scripts, such as `unknown-key`.
    pub code: &'static str,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What the mark under the source says.
    pub label: String,
    /// A fix to paste.
    pub help: Option<String>,
    /// Where it was written.
    pub at: Option<(Source, Range<usize>)>,
    /// The file, where there is nothing to point at inside it.
    pub file: Option<String>,
}

impl Diagnostic {
    /// A mistake at a place.
    pub fn at(
        code: &'static str,
        source: &Source,
        span: Range<usize>,
        message: impl Into<String>,
    ) -> Self {
        let at = Some((source.clone(), span));
        Self { code, message: message.into(), label: "here".to_owned(), help: None, at, file: None }
    }

    /// A mistake about a whole file.
    pub fn about(code: &'static str, file: impl Into<String>, message: impl Into<String>) -> Self {
        let label = String::new();
        let file = Some(file.into());
        Self { code, message: message.into(), label, help: None, at: None, file }
    }

    /// What the mark under the source says.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// A fix to paste.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The file it is about.
    pub fn file(&self) -> Option<&str> {
        self.at.as_ref().map(|(source, _)| source.name()).or(self.file.as_deref())
    }

    /// Line and column, from one.
    pub fn position(&self) -> Option<(usize, usize)> {
        self.at.as_ref().map(|(source, span)| source.position(span.start))
    }

    /// The message with its piece of source, as a person reads it.
    pub fn render(&self, colour: bool, width: usize) -> String {
        let theme =
            if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        let handler = GraphicalReportHandler::new_themed(theme)
            .with_links(false)
            .with_width(width)
            .with_context_lines(1)
            .without_cause_chain();
        let mut out = String::new();
        match handler.render_report(&mut out, &Report(self)) {
            Ok(()) => out,
            // Only a broken writer fails, and a string is none.
            Err(fmt::Error) => self.message.clone(),
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Diagnostic {}

/// A line of this many bytes can still be read on a screen.
const LINE_MAX: usize = 300;

/// The view that `miette` draws: positions come from our own source.
#[derive(Debug)]
struct Report<'a>(&'a Diagnostic);

impl Report<'_> {
    /// The source, unless the lines around the mistake are too long to be shown.
    fn shown(&self) -> Option<&(Source, Range<usize>)> {
        self.0
            .at
            .as_ref()
            .filter(|(source, span)| source.longest_line_around(span.start) <= LINE_MAX)
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.0.file, &self.0.at, self.shown()) {
            (Some(file), _, _) => write!(f, "{file}: {}", self.0.message),
            (None, Some((source, span)), None) => {
                let (line, column) = source.position(span.start);
                write!(f, "{}:{line}:{column}: {}", source.name(), self.0.message)
            }
            _ => f.write_str(&self.0.message),
        }
    }
}

impl std::error::Error for Report<'_> {}

impl miette::Diagnostic for Report<'_> {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.0.code))
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.0.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.shown().map(|(source, _)| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let (source, span) = self.shown()?;
        // Several lines would be drawn as a box around half the file: mark the first one.
        let line = source.slice(span).lines().next().unwrap_or_default().trim_end().len();
        let label = Some(self.0.label.clone());
        Some(Box::new(std::iter::once(LabeledSpan::new(label, span.start, line))))
    }
}

impl SourceCode for Source {
    fn read_span<'a>(
        &'a self,
        span: &miette::SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn miette::SpanContents<'a> + 'a>, miette::MietteError> {
        let inner = self.text().read_span(span, before, after)?;
        Ok(Box::new(miette::MietteSpanContents::new_named(
            self.name().to_owned(),
            inner.data(),
            *inner.span(),
            inner.line(),
            inner.column(),
            inner.line_count(),
        )))
    }
}
