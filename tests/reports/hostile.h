// Text that tries to break out of every format a report is written in.
#pragma once

#include <string_view>

namespace kvlab {

inline constexpr std::string_view kHostile =
    "=HYPERLINK(\"http://x.invalid\") </script><script>window.hacked=1</script>"
    "<img src=http://x.invalid/a.png onerror=alert(1)> & &lt; \"'` | ~ ^ _ % $ # {} "
    "\\input{/etc/passwd} "
    "\\\\ [a](http://x.invalid) **b** --- ,;\n\r\tline two \x1b[31mred\x1b]0;title\x07 \x01\x7f "
    "\u202egnirts\u202c \u009b1m 日本 é 😀 \xff\xfe";

}  // namespace kvlab
