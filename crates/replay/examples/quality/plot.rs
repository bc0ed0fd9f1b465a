//! One picture: time over 100 % beside requests only, a bar for each policy and data set. Nothing is loaded from anywhere.

use crate::sheet::Sheets;
use std::fmt::Write;

const COLOURS: [&str; 3] = ["#4477aa", "#ee6677", "#228833"];
const WIDTH: f64 = 760.0;
const NAMES: f64 = 180.0;
const BAR: f64 = 9.0;
/// The axis ends here; longer bars are cut, and their figure stands beside them.
const MOST: f64 = 2.0;

/// Where a ratio is.
fn x(ratio: f64) -> f64 {
    NAMES + ratio.min(MOST) / MOST * (WIDTH - NAMES - 50.0)
}

pub fn svg(sheets: &Sheets) -> String {
    let shown: Vec<_> =
        sheets.all.iter().filter(|sheet| !sheet.beside("requests", "requests").0.is_empty()).collect();
    let policies: Vec<_> = sheets.policies.iter().filter(|policy| !policy.protection).collect();
    let row = BAR * shown.len() as f64 + 6.0;
    let height = row * policies.len() as f64 + 40.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"t d\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <title id=\"t\">Time over 100 % by policy, beside requests only</title>\n\
         <desc id=\"d\">A bar for each policy and data set: the geometric mean of its time over 100 % beside that of placing by requests alone.</desc>\n\
         <style>@media (prefers-color-scheme:dark){{.page{{fill:#11181f}}text{{fill:#e4e7eb}}}}</style>\n\
         <rect class=\"page\" width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    for (place, sheet) in shown.iter().enumerate() {
        let _ = writeln!(
            svg,
            "<text x=\"{:.0}\" y=\"14\" fill=\"{}\">{}</text>",
            NAMES + 90.0 * place as f64,
            COLOURS[place % COLOURS.len()],
            sheet.data.name
        );
    }
    for (at, name) in [(0.0, "0"), (0.2, "⅕"), (1.0, "as requests only"), (2.0, "twice")] {
        let _ = writeln!(
            svg,
            "<line x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"22\" y2=\"{1:.1}\" stroke=\"#bbbbbb\"/>\
             <text x=\"{0:.1}\" y=\"{2:.1}\" text-anchor=\"middle\" fill=\"#555555\">{name}</text>",
            x(at),
            height - 16.0,
            height - 4.0
        );
    }
    for (place, policy) in policies.iter().enumerate() {
        let (name, top) = (policy.to_string(), 24.0 + row * place as f64);
        let _ = writeln!(
            svg,
            "<text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>",
            NAMES - 8.0,
            top + row / 2.0 + 2.0
        );
        for (bar, sheet) in shown.iter().enumerate() {
            let Some(ratio) = sheet.beside(&name, "requests").ratio() else { continue };
            let y = top + BAR * bar as f64;
            let _ = writeln!(
                svg,
                "<rect x=\"{NAMES}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{}\" fill=\"{}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" font-size=\"8\">{ratio:.2}</text>",
                x(ratio) - NAMES,
                BAR - 1.0,
                COLOURS[bar % COLOURS.len()],
                x(ratio) + 4.0,
                y + BAR - 2.0
            );
        }
    }
    svg + "</svg>\n"
}
