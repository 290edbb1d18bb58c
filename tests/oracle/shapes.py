"""What random expressions look like: for each type of value, the ways to write one, with their weights. Data alone.

A form is text with gaps: `<int>` is filled with an expression of type int; `<x:int>` declares a variable of that type for the gaps behind it in the
same form, and leaves its name. A form without gaps is a leaf. `GENERIC` forms are written once for each type that `$T` may stand for.
Weights lean towards what selectors are made of; rare corners get a 1.
"""

from __future__ import annotations

from typing import Final

Form = tuple[int, str]

OWN: Final = "d.example.com"
"""The driver, and so the domain of names that have none."""

DOMAINS: Final = (OWN, "resource.kubernetes.io", "other.io")

ATTRIBUTES: Final = {
    "string": ("s1", "s2", "model"),
    "int": ("i1", "i2"),
    "bool": ("b1", "b2"),
    "semver": ("v1", "v2"),
    "list_string": ("ls",),
    "list_int": ("li",),
    "list_bool": ("lb",),
    "list_semver": ("lv",),
}
"""Names of attributes by the type that they mostly have; devices have some of them, and a few with another type."""

CAPACITIES: Final = ("mem", "cores", "bw")

SCALARS: Final = ("int", "string", "bool", "double", "uint", "semver", "quantity")
LISTS: Final = (
    "int",
    "string",
    "bool",
    "double",
    "semver",
    "quantity",
    "dyn",
    "uint",
    "duration",
    "timestamp",
)
"""Element types of the lists that are written; each makes a type `list_…` and `opt_…`."""

TOP: Final[tuple[Form, ...]] = (
    (10, 'device.driver == "d.example.com" && <bool>'),
    (6, "<bool> && <bool>"),
    (6, "<bool> || <bool>"),
    (3, "<bool> && <bool> && <bool> && <bool>"),
    (2, "<bool> || <bool> || <bool>"),
    (2, "<bool> ? <bool> : <bool>"),
    (2, "cel.bind(<x:map_attribute>, device.attributes[<domain>], <bool>)"),
    (1, "cel.bind(<x:map_quantity>, device.capacity[<domain>], <bool>)"),
    (30, "<bool>"),
    (2, "<dyn>"),
)
"""Whole selectors."""

DERIVED: Final[tuple[Form, ...]] = (
    (8, "<string>"), (8, "<int>"), (5, "<bool>"), (4, "<semver>"), (6, "<dyn>"), (3, "<list_string>"), (3, "<list_int>"), (2, "<list_bool>"), (2, "<list_semver>"),
    (1, "<list_dyn>"), (1, "<double>"), (1, "<quantity>"), (1, "<map_string_int>"), (1, "<opt_string>"), (1, "<duration>"), (1, "<null>"), (1, "<uint>"),
)  # fmt: skip
"""Whole derived attributes."""

LEAVES: Final[dict[str, tuple[Form, ...]]] = {
    "domain": ((12, '"d.example.com"'), (3, '"resource.kubernetes.io"'), (2, '"other.io"'), (2, "device.driver"), (1, '"nope.io"'), (1, '"d.example" + ".com"')),
    "bool": (
        (3, "true"), (3, "false"), (3, "device.allowMultipleAllocations"), (10, "<attribute:bool>"), (2, 'device.driver == "d.example.com"'), (4, "<attribute:string> == <string>"), (2, "<attribute:int> <compare> <int>"),
        (2, "has(<attributes>.<name>)"), (1, "<capacities>.<capacity>.compareTo(<quantity>) <compare> 0"), (1, "<attribute:semver>.isGreaterThan(<semver>)"), (1, "<attribute:string>.matches(<regex>)"),
    ),
    "int": (
        (12, "<attribute:int>"), (6, "0"), (8, "1"), (6, "2"), (5, "3"), (3, "-1"), (3, "-7"), (4, "40"), (1, "100"), (1, "9223372036854775807"), (1, "-9223372036854775808"), (1, "-(-9223372036854775808)"), (1, "0x1F"), (1, "9007199254740993"),
    ),
    "uint": ((3, "0u"), (3, "1u"), (3, "2u"), (1, "18446744073709551615u"), (1, "40u"), (1, "0xFFu")),
    "double": ((3, "0.0"), (3, "1.0"), (3, "1.5"), (2, "-2.5"), (1, "1e100"), (1, "3.0"), (1, ".5"), (1, "1e-9"), (1, "9223372036854775807.0"), (1, "1e308 * 10.0"), (1, "0.0 / 0.0"), (1, "123456789.125")),
    "string": (
        (20, "<attribute:string>"), (5, '"a"'), (5, '"A100-SXM"'), (3, '""'), (3, '"1.0.0"'), (3, '"1.2.3-rc.1"'), (3, '"héé"'), (3, "device.driver"), (2, '"pci0000:00"'), (2, '"10Gi"'), (2, '"-1"'), (2, "'x,y,z'"),
        (1, '"日本 😀"'), (1, r'"a\nb\t\"c\""'), (1, r'r"\d+"'), (1, "'''q\"q'''"), (1, r'"é\U0001F600\x41\101"'), (1, '"true"'), (1, '"3.14"'), (1, '"1h30m"'), (1, '"2024-02-29T12:30:45.5Z"'),
        (1, '"10.0.0.1"'), (1, '"https://h.io:80/p?q=1"'), (1, '"Gpu"'), (1, '" trim "'), (1, r'"\u200b\u0000x"'),
    ),
    "bytes": ((2, 'b"abc"'), (1, 'b""'), (1, r'b"\xff\x00"'), (1, "b'é'")),
    "quantity": (
        (12, "<capacities>.<capacity>"), (5, 'quantity("10Gi")'), (5, 'quantity("40Gi")'), (3, 'quantity("1")'), (2, 'quantity("500m")'), (2, 'quantity("1.5")'), (2, 'quantity("0")'), (1, 'quantity("-1")'), (2, 'quantity("10G")'),
        (1, 'quantity("1e3")'), (1, 'quantity("12E")'), (1, 'quantity("1n")'), (1, 'quantity("9223372036854775807")'), (1, 'quantity("bad")'), (1, 'quantity("100000Ei")'),
    ),
    "semver": (
        (12, "<attribute:semver>"), (5, 'semver("1.0.0")'), (4, 'semver("1.2.3-rc.1")'), (3, 'semver("10.4.0+b7")'), (2, 'semver("550.0.0")'), (1, 'semver("1.0", true)'), (1, 'semver("v1.2.3", true)'),
        (1, 'semver("bad")'), (1, 'semver("01.2.3", true)'), (1, 'semver("1.0")'),
    ),
    "duration": (
        (3, 'duration("1h")'), (2, 'duration("90s")'), (2, 'duration("1h30m5.25s")'), (1, 'duration("-5m")'), (1, 'duration("1ms")'), (1, 'duration("0")'), (1, 'duration("292y")'),
        (1, 'duration("2540400h")'), (1, 'duration("1us")'), (1, 'duration("3ns")'),
    ),
    "timestamp": (
        (3, 'timestamp("2024-02-29T12:30:45Z")'), (2, 'timestamp("2023-12-31T23:59:59.999999999Z")'), (2, 'timestamp("1970-01-01T00:00:00+02:00")'), (1, "timestamp(0)"), (1, "timestamp(1700000000)"),
        (1, 'timestamp("0001-01-01T00:00:00Z")'), (1, 'timestamp("9999-12-31T23:59:59Z")'), (1, 'timestamp("2024-13-01T00:00:00Z")'), (1, 'timestamp("bad")'),
    ),
    "ip": ((3, 'ip("10.0.0.1")'), (2, 'ip("::1")'), (1, 'ip("127.0.0.1")'), (1, 'ip("0.0.0.0")'), (1, 'ip("fe80::1")'), (1, 'ip("2001:DB8::")'), (1, 'ip("::ffff:1.2.3.4")'), (1, 'ip("bad")'), (1, 'ip("224.0.0.5")'), (1, 'ip("1.2.3.04")')),
    "cidr": ((3, 'cidr("10.0.0.0/8")'), (2, 'cidr("10.0.0.7/24")'), (2, 'cidr("2001:db8::/32")'), (1, 'cidr("0.0.0.0/0")'), (1, 'cidr("::1/128")'), (1, 'cidr("bad")'), (1, 'cidr("10.0.0.0/33")'), (1, 'cidr("::ffff:1.2.3.4/96")')),
    "url": (
        (3, 'url("https://example.com:8080/a/b?x=1&y=2&x=3#f")'), (1, 'url("http://u:p@h/")'), (1, 'url("https://[::1]:80/%41 b")'), (1, 'url("/abs/path?z=%20")'), (1, 'url("bad")'), (1, 'url("mailto:a@b")'),
        (1, 'url("https://h.io/é?q=é")'), (1, 'url("http://h:99999/")'),
    ),
    "format": ((3, "format.dns1123Label()"), (1, "format.dns1123Subdomain()"), (1, "format.qualifiedName()"), (1, "format.labelValue()"), (1, "format.uri()"), (1, "format.uuid()"), (1, "format.byte()"), (1, "format.date()"), (1, "format.datetime()"), (1, "format.dns1035Label()"), (1, "format.dns1123LabelPrefix()"), (1, "format.dns1035LabelPrefix()"), (1, "format.dns1123SubdomainPrefix()")),
    "struct": ((2, "google.protobuf.Struct{fields: <map_string_int>}"), (1, "google.protobuf.Struct{fields: <map_attribute>}"), (1, "google.protobuf.Struct{fields: <map_string_string>}"), (1, "google.protobuf.Struct{fields: {<string>: <any>}}"), (1, "google.protobuf.Struct{fields: dyn(<map_int_string>)}"), (1, "google.protobuf.Struct{?fields: <opt_dyn>}")),
    "message": ((2, "google.protobuf.Empty{}"), (1, "dyn(google.protobuf.Empty{})"), (1, "google.protobuf.Struct.FieldsEntry{key: <string>}"), (1, "dyn(google.protobuf.Struct.FieldsEntry{value: <dyn>})")),
    "type": ((2, "int"), (2, "string"), (1, "bool"), (1, "list"), (1, "map"), (1, "double"), (1, "uint"), (1, "null_type"), (1, "type"), (1, "bytes"), (1, "google.protobuf.Timestamp"), (1, "google.protobuf.Duration"), (1, "optional_type")),
    "null": ((1, "null"),),
    "regex": (
        (4, '"^a"'), (3, '"A100"'), (3, '"^(Hopper|A100.*)$"'), (2, r'r"\d+"'), (2, '"[a-z]+"'), (1, '""'), (1, '"("'), (1, '"a{2,3}?"'), (1, r'r"(?i)sxm|pcie"'), (1, r'r"(\w+)-(\w+)"'), (1, r'r"\pL+"'), (1, '"[["'), (1, r'r"(a)\1"'), (1, '"x*"'), (1, "<string>"),
    ),
    "map_string_int": ((3, '{"a": 1, "b": 2}'), (2, "{}"), (1, '{"a": 1, "a": 2}'), (1, '{"s1": 3,}')),
    "map_string_string": ((3, '{"a": "x"}'), (2, '{"a": "1", "b": "2"}'), (1, "{}")),
    "map_int_string": ((3, '{1: "a", 2: "b"}'), (1, '{0: ""}')),
    "map_attribute": ((3, 'device.attributes["d.example.com"]'), (1, 'device.attributes["nope.io"]'), (1, 'device.attributes["other.io"]')),
    "map_quantity": ((3, 'device.capacity["d.example.com"]'), (1, 'device.capacity["nope.io"]'), (1, 'device.capacity["other.io"]')),
    "map_device": ((2, "device.attributes"), (1, "device.capacity")),
    "dyn": ((8, "<attributes>.<name>"), (4, "<attribute_list>"), (1, "dyn(1)"), (1, 'dyn("a")'), (1, "dyn(1.0)"), (1, "dyn(1u)"), (1, "dyn(true)"), (1, "dyn(null)"), (1, "dyn([1])"), (1, 'dyn(quantity("1"))'), (1, 'dyn({"a": 1})')),
}  # fmt: skip
"""What may stand where no more is to be nested."""

FORMS: Final[dict[str, tuple[Form, ...]]] = {
    "bool": (
        (20, "<attribute:bool>"), (6, "!<bool>"), (8, "<bool> && <bool>"), (8, "<bool> || <bool>"), (4, "(<bool> ? <bool> : <bool>)"), (4, "(<bool>)"),
        (10, "<string> == <string>"), (4, "<string> != <string>"), (8, "<int> <compare> <int>"), (3, "<string> <compare> <string>"), (3, "<double> <compare> <double>"), (2, "<uint> <compare> <uint>"),
        (4, "<dyn> == <any>"), (4, "<any> == <dyn>"), (3, "<dyn> != <any>"), (3, "<dyn> <compare> <any>"), (2, "<any> == <any>"), (1, "<bytes> <compare> <bytes>"), (1, "<bool> <compare> <bool>"),
        (1, "<int> <compare> <double>"), (1, "<int> <compare> <uint>"), (1, "<uint> <compare> <double>"), (2, "<quantity> == <quantity>"), (2, "<semver> == <semver>"),
        (12, "<quantity>.compareTo(<quantity>) <compare> 0"), (5, "<quantity>.isGreaterThan(<quantity>)"), (5, "<quantity>.isLessThan(<quantity>)"), (2, "<quantity>.isInteger()"), (2, "isQuantity(<string>)"),
        (8, "<semver>.isGreaterThan(<semver>)"), (4, "<semver>.isLessThan(<semver>)"), (3, "<semver>.compareTo(<semver>) <compare> 0"), (2, "isSemver(<string>)"), (1, "isSemver(<string>, <bool>)"),
        (4, "<string>.startsWith(<string>)"), (3, "<string>.endsWith(<string>)"), (3, "<string>.contains(<string>)"), (7, "<string>.matches(<regex>)"), (1, "matches(<string>, <regex>)"),
        (7, "has(<attributes>.<name>)"), (3, "has(<capacities>.<capacity>)"), (2, "has(<map_string_int>.<key>)"), (1, "has(device.<field>)"), (1, "has(<dyn>.<name>)"), (1, "has(<map_attribute>.<name>)"), (1, "has(device.attributes.<key>)"),
        (4, "<domain> in device.attributes"), (4, '"<name>" in <attributes>'), (2, '"<capacity>" in <capacities>'), (3, "<string> in <map_string_int>"), (2, "<any> in <dyn>"), (1, "<dyn> in <any>"),
        (4, "<dyn>.includes(<any>)"), (3, "<attribute_list>.includes(<any>)"), (1, "<any>.includes(<any>)"),
        (3, "<attributes>.exists(<k:string>, <bool>)"), (2, "<attributes>.all(<k:string>, <bool>)"), (1, "<capacities>.exists_one(<k:string>, <bool>)"), (2, "<map_string_int>.all(<k:string>, <v:int>, <bool>)"),
        (1, "<map_string_int>.exists(<k:string>, <v:int>, <bool>)"), (1, "<map_attribute>.existsOne(<k:string>, <v:dyn>, <bool>)"), (1, "device.attributes.all(<k:string>, <v:map_attribute>, <bool>)"), (1, "device.attributes.exists(<k:string>, <bool>)"),
        (3, "<dyn>.exists(<e:dyn>, <bool>)"), (2, "<dyn>.all(<e:dyn>, <bool>)"), (1, "<dyn>.exists_one(<e:dyn>, <bool>)"), (1, "<dyn>.all(<i:int>, <e:dyn>, <bool>)"), (1, "<dyn>.exists(<i:int>, <e:dyn>, <bool>)"),
        (2, "<duration> <compare> <duration>"), (2, "<timestamp> <compare> <timestamp>"), (1, "<duration> == <duration>"), (1, "<timestamp> == <timestamp>"),
        (1, "isIP(<string>)"), (1, "isCIDR(<string>)"), (1, "ip.isCanonical(<string>)"), (1, "<ip>.isLoopback()"), (1, "<ip>.isUnspecified()"), (1, "<ip>.isGlobalUnicast()"), (1, "<ip>.isLinkLocalUnicast()"), (1, "<ip>.isLinkLocalMulticast()"),
        (2, "<cidr>.containsIP(<ip>)"), (1, "<cidr>.containsIP(<string>)"), (1, "<cidr>.containsCIDR(<cidr>)"), (1, "<cidr>.containsCIDR(<string>)"), (1, "<ip> == <ip>"), (1, "<cidr> == <cidr>"), (1, "<url> == <url>"), (1, "isURL(<string>)"),
        (1, "<format>.validate(<string>).hasValue()"), (1, "<format> == <format>"), (2, "type(<any>) == <type>"), (1, "type(<dyn>) == type(<any>)"), (1, "type(<any>) == type(<any>)"), (1, "bool(<string>)"), (1, "bool(<dyn>)"),
        (1, "<map_string_int> == <map_string_int>"), (1, "<map_int_string> == <map_int_string>"), (1, "<null> == <dyn>"), (1, "<opt_string> == <opt_string>"), (1, "<opt_dyn> == <opt_int>"), (2, "cel.bind(<x:int>, <int>, <bool>)"), (2, "cel.bind(<x:dyn>, <dyn>, <bool>)"),
        (1, "cel.bind(<x:string>, <string>, <bool>)"), (1, "dyn(<bool>)"), (1, "<opt_int>.optMap(<x:int>, <bool>).orValue(<bool>)"), (1, "<list_dyn> == <list_int>"), (1, "sets.contains(<list_dyn>, <list_int>)"),
    ),
    "int": (
        (12, "<attribute:int>"), (4, "<int> + <int>"), (3, "<int> - <int>"), (3, "<int> * <int>"), (2, "<int> / <int>"), (2, "<int> % <int>"), (1, "-<int>"), (2, "(<bool> ? <int> : <int>)"),
        (3, "size(<string>)"), (2, "<string>.size()"), (2, "<dyn>.size()"), (1, "size(<dyn>)"), (2, "<map_device>.size()"), (2, "<attributes>.size()"), (1, "size(<map_string_int>)"), (1, "<bytes>.size()"),
        (2, "int(<string>)"), (1, "int(<double>)"), (1, "int(<uint>)"), (1, "int(<dyn>)"), (1, "int(<timestamp>)"), (1, "int(<int>)"),
        (2, "<string>.indexOf(<string>)"), (1, "<string>.indexOf(<string>, <int>)"), (1, "<string>.lastIndexOf(<string>)"), (1, "<string>.lastIndexOf(<string>, <int>)"),
        (3, "<quantity>.compareTo(<quantity>)"), (3, "<quantity>.asInteger()"), (1, "sign(<quantity>)"), (3, "<semver>.major()"), (2, "<semver>.minor()"), (1, "<semver>.patch()"), (1, "<semver>.compareTo(<semver>)"),
        (1, "<duration>.getHours()"), (1, "<duration>.getMinutes()"), (1, "<duration>.getSeconds()"), (1, "<duration>.getMilliseconds()"), (2, "<timestamp>.<part>()"), (2, "<timestamp>.<part>(<zone>)"), (1, "<timestamp>.getHours()"),
        (1, "<ip>.family()"), (1, "<cidr>.prefixLength()"), (2, "<map_string_int>.<key>"), (2, '<map_string_int>["a"]'), (1, "<map_string_int>[<string>]"), (1, "cel.bind(<x:int>, <int>, <int>)"), (1, "<dyn> + <int>"), (1, "<int> * <dyn>"),
    ),
    "uint": ((2, "<uint> + <uint>"), (1, "<uint> - <uint>"), (1, "<uint> * <uint>"), (1, "<uint> / <uint>"), (1, "<uint> % <uint>"), (2, "uint(<int>)"), (1, "uint(<double>)"), (1, "uint(<string>)"), (1, "uint(<dyn>)")),
    "double": ((2, "<double> + <double>"), (1, "<double> - <double>"), (2, "<double> * <double>"), (2, "<double> / <double>"), (1, "-<double>"), (2, "double(<int>)"), (1, "double(<string>)"), (1, "double(<uint>)"), (3, "<quantity>.asApproximateFloat()"), (1, "double(<dyn>)")),
    "string": (
        (20, "<attribute:string>"), (4, "<string> + <string>"), (2, "(<bool> ? <string> : <string>)"), (3, "<string>.lowerAscii()"), (1, "<string>.upperAscii()"), (1, "<string>.trim()"), (2, "<string>.charAt(<int>)"), (3, "<string>.substring(<int>)"),
        (2, "<string>.substring(<int>, <int>)"), (2, "<string>.replace(<string>, <string>)"), (1, "<string>.replace(<string>, <string>, <int>)"), (2, "<list_string>.join()"), (2, "<list_string>.join(<string>)"), (1, "strings.quote(<string>)"),
        (2, "<string>.find(<regex>)"), (2, "string(<int>)"), (1, "string(<double>)"), (1, "string(<bool>)"), (1, "string(<uint>)"), (1, "string(<dyn>)"), (1, "string(<bytes>)"), (1, "string(<duration>)"), (1, "string(<timestamp>)"), (1, "string(<string>)"), (1, "string(<ip>)"), (1, "string(<cidr>)"),
        (3, "<template>.format([<any>])"), (2, "<template2>.format([<any>, <any>])"), (1, "<string>.format(<list_dyn>)"), (1, '"%s".format([<any>])'), (1, "<url>.getHost()"), (1, "<url>.getHostname()"), (1, "<url>.getPort()"), (1, "<url>.getScheme()"), (1, "<url>.getEscapedPath()"),
        (1, "<map_string_string>.<key>"), (1, "<map_int_string>[<int>]"), (1, "<map_string_string>[<string>]"), (1, "cel.bind(<x:string>, <string>, <string>)"), (1, "<dyn> + <string>"), (1, "<string>.reverse()"),
    ),
    "bytes": ((1, "bytes(<string>)"), (1, "<bytes> + <bytes>")),
    "quantity": (
        (14, "<capacities>.<capacity>"), (5, '<capacities>["<capacity>"]'), (4, "<capacities>.?<capacity>.orValue(<quantity>)"), (2, '<capacities>[?"<capacity>"].orValue(<quantity>)'), (3, "<quantity>.add(<quantity>)"), (2, "<quantity>.sub(<quantity>)"), (1, "<quantity>.add(<int>)"), (1, "<quantity>.sub(<int>)"),
        (1, "quantity(<string>)"), (1, "(<bool> ? <quantity> : <quantity>)"), (1, "<opt_quantity>.value()"), (1, "<map_quantity>.<capacity>"), (1, "quantity(string(<int>))"),
    ),
    "semver": ((12, "<attribute:semver>"), (2, "semver(<string>)"), (1, "semver(<string>, <bool>)"), (1, "(<bool> ? <semver> : <semver>)")),
    "duration": ((1, "<duration> + <duration>"), (1, "<duration> - <duration>"), (1, "<timestamp> - <timestamp>"), (1, "duration(<string>)"), (1, 'duration(string(<int>) + "s")'), (1, "(<bool> ? <duration> : <duration>)"), (1, "duration(<duration>)")),
    "timestamp": ((1, "<timestamp> + <duration>"), (1, "<duration> + <timestamp>"), (1, "<timestamp> - <duration>"), (1, "timestamp(<string>)"), (1, "timestamp(<int>)"), (1, "timestamp(<timestamp>)")),
    "ip": ((2, "<cidr>.ip()"), (1, "ip(<string>)")),
    "cidr": ((2, "<cidr>.masked()"), (1, "cidr(<string>)")),
    "url": ((1, "url(<string>)"),),
    "format": ((1, 'format.named("dns1123Label").value()'), (1, "format.named(<string>).orValue(<format>)")),
    "regex": (),
    "null": (),
    "type": ((1, "type(<any>)"),),
    "domain": (),
    "map_string_int": ((1, '{"a": <int>, "b": <int>}'), (1, "{<string>: <int>}"), (1, '{?"a": <opt_int>}'), (1, "(<bool> ? <map_string_int> : <map_string_int>)"), (2, "<list_int>.transformMapEntry(<i:int>, <e:int>, {string(<int>): <int>})"), (2, "<map_string_int>.transformMap(<k:string>, <v:int>, <int>)"), (1, "<map_string_int>.transformMap(<k:string>, <v:int>, <bool>, <int>)"), (1, "<map_string_int>.transformMapEntry(<k:string>, <v:int>, {<string>: <int>})")),
    "map_string_string": ((1, '{"a": <string>}'), (1, "{<string>: <string>, <string>: <string>}"), (1, "<map_string_int>.transformMap(<k:string>, <v:int>, string(<int>))"), (1, "<list_string>.transformMapEntry(<i:int>, <e:string>, {<string>: <string>})")),
    "map_int_string": ((1, "{<int>: <string>}"), (1, "<list_string>.transformMap(<i:int>, <e:string>, <string>)"), (1, "<list_string>.transformMap(<i:int>, <e:string>, <bool>, <string>)")),
    "map_attribute": ((2, "device.attributes[<domain>]"), (1, "device.attributes[?<domain>].orValue({})")),
    "map_quantity": ((2, "device.capacity[<domain>]"), (1, "device.capacity[?<domain>].orValue({})")),
    "map_device": (),
    "dyn": (
        (20, "<attributes>.<name>"), (8, '<attributes>["<name>"]'), (2, "device.attributes.<key>.<name>"), (2, "<map_attribute>.<name>"), (1, "dyn(<any>)"), (1, "<dyn>[<int>]"), (1, "<dyn>[<string>]"), (1, "<list_dyn>[<int>]"), (2, "<opt_dyn>.orValue(<any>)"), (1, "<opt_dyn>.value()"),
        (1, "<attributes>[<string>]"), (1, "(<bool> ? <dyn> : <any>)"), (1, "<dyn>.<name>"), (1, "<dyn> + <any>"), (1, "<any> + <dyn>"), (1, "-<dyn>"), (1, "<dyn> - <dyn>"), (1, "<dyn> / <any>"), (1, "<dyn> % <dyn>"), (1, "<attribute_list>[<int>]"), (1, "{<any>: <any>}"), (1, "cel.bind(<x:dyn>, <dyn>, <any>)"),
    ),
    "opt_dyn": ((6, "<attributes>.?<name>"), (4, '<attributes>[?"<name>"]'), (2, "device.attributes[?<domain>].?<name>"), (1, "device.?attributes[<domain>].?<name>"), (1, "<dyn>.?<name>"), (1, "<dyn>[?<int>]"), (1, "<map_attribute>.?<name>"), (1, "<opt_dyn>.optMap(<x:dyn>, <any>)"), (1, "<opt_dyn>.optFlatMap(<x:dyn>, <opt_dyn>)")),
    "opt_string": ((1, "<map_string_string>[?<string>]"), (1, "<map_string_string>.?<key>"), (1, "<map_int_string>[?<int>]"), (1, "<list_string>.first()"), (1, "<list_string>.last()")),
    "opt_int": ((1, "<map_string_int>[?<string>]"), (1, "<map_string_int>.?<key>"), (1, "<list_int>.first()"), (1, "<list_int>.last()"), (1, "<opt_string>.optMap(<x:string>, <int>)")),
    "opt_quantity": ((4, "<capacities>.?<capacity>"), (3, '<capacities>[?"<capacity>"]'), (1, "device.capacity[?<domain>].?<capacity>")),
    "attribute_list": ((1, "<attribute:list_string>"), (1, "<attribute:list_int>"), (1, "<attribute:list_bool>"), (1, "<attribute:list_semver>")),
    "list_string": ((4, "<attribute:list_string>"), (4, "<string>.split(<string>)"), (1, "<string>.split(<string>, <int>)"), (1, "<string>.findAll(<regex>)"), (1, "<string>.findAll(<regex>, <int>)"), (2, "<attributes>.map(<k:string>, <string>)"), (1, "<attributes>.filter(<k:string>, <bool>)"), (1, "<map_string_int>.map(<k:string>, <string>)"), (1, "<format>.validate(<string>).orValue([])"), (1, "<url>.getQuery()[<string>]"), (1, "<map_string_int>.transformList(<k:string>, <v:int>, <string>)"), (1, "device.attributes.map(<k:string>, <string>)")),
    "list_int": ((4, "<attribute:list_int>"), (2, "lists.range(<small>)"), (1, "<map_string_int>.transformList(<k:string>, <v:int>, <int>)"), (1, "<map_string_int>.transformList(<k:string>, <v:int>, <bool>, <int>)"), (1, "<attributes>.map(<k:string>, <int>)")),
    "list_bool": ((4, "<attribute:list_bool>"),),
    "list_semver": ((4, "<attribute:list_semver>"),),
    "list_dyn": ((2, "[<dyn>, <dyn>]"), (2, "[dyn(<any>), <any>]"), (1, "<attributes>.map(<k:string>, <attributes>[<string>])"), (1, "<attributes>.transformList(<k:string>, <v:dyn>, <any>)"), (1, "<dyn>.map(<e:dyn>, <any>)"), (1, "<dyn>.filter(<e:dyn>, <bool>)"), (1, "<list_any>.flatten()")),
    "list_any": ((1, "[[<int>], [<int>, <int>]]"), (1, "[<list_int>, <list_int>]"), (1, "[[[<int>]], []]"), (1, "[dyn([<any>]), <dyn>]")),
}  # fmt: skip
"""Ways to write a value of a type out of others."""

MESSAGES: Final[dict[str, tuple[Form, ...]]] = {
    "bool": ((2, "google.protobuf.BoolValue{value: <bool>}"), (1, "has(<message>.<key>)")),
    "int": ((2, "google.protobuf.Int64Value{value: <int>}"), (2, "google.protobuf.Int32Value{value: <int>}"), (1, "google.protobuf.Int64Value{?value: <opt_int>}"), (1, "google.protobuf.Int64Value{value: <dyn>}")),
    "uint": ((1, "google.protobuf.UInt64Value{value: <uint>}"), (1, "google.protobuf.UInt32Value{value: <uint>}")),
    "double": ((1, "google.protobuf.DoubleValue{value: <double>}"), (1, "google.protobuf.FloatValue{value: <double>}"), (1, "google.protobuf.DoubleValue{}")),
    "string": ((2, "google.protobuf.StringValue{value: <string>}"), (1, "google.protobuf.StringValue{value: <dyn>}"), (1, "google.protobuf.StringValue{?value: <opt_string>}"), (1, "google.protobuf.StringValue{value: dyn(<any>)}")),
    "bytes": ((1, "google.protobuf.BytesValue{value: <bytes>}"), (1, "google.protobuf.BytesValue{value: dyn(<list_uint>)}")),
    "duration": ((1, "google.protobuf.Duration{seconds: <int>}"), (1, "google.protobuf.Duration{seconds: <int>, nanos: <int>}"), (1, "-dyn(<duration>)")),
    "timestamp": ((1, "google.protobuf.Timestamp{seconds: <int>}"), (1, "google.protobuf.Timestamp{seconds: <int>, nanos: <int>}"), (1, "google.protobuf.Timestamp{?nanos: <opt_int>}")),
    "dyn": (
        (1, "google.protobuf.Value{number_value: <double>}"), (1, "google.protobuf.Value{string_value: <string>}"), (1, "google.protobuf.Value{bool_value: <bool>}"), (1, "google.protobuf.Value{null_value: <int>}"),
        (1, "google.protobuf.Value{struct_value: <struct>}"), (1, "google.protobuf.Value{list_value: <list_dyn>}"), (1, "google.protobuf.Value{}"), (2, "<struct>.<key>"), (1, "<struct>[<string>]"), (1, "<message>.<key>"),
        (1, r'google.protobuf.Any{type_url: "type.googleapis.com/google.protobuf.<packed>", value: b"\x08\x05"}'), (1, r'google.protobuf.Any{type_url: "a/google.protobuf.<packed>", value: b"\x0a\x02\x0a\x00"}'),
        (1, 'google.protobuf.Any{type_url: "google.protobuf.<packed>", value: <bytes>}'), (1, r'google.protobuf.Any{type_url: "google.protobuf.<packed>", value: b"\x12\x01a\x1a\x03abc"}'),
        (1, r'google.protobuf.Any{type_url: "google.protobuf.<packed>", value: b"\x0a\x06\x0a\x01a\x12\x01\x20"}'),
    ),
    "opt_dyn": ((1, "<struct>.?<key>"), (1, "<struct>[?<string>]"), (1, "<message>.?<key>")),
    "list_dyn": ((1, "google.protobuf.ListValue{values: <list_int>}"), (1, "google.protobuf.ListValue{values: <list_string>}"), (1, "google.protobuf.ListValue{values: <list_dyn>}"), (1, "google.protobuf.ListValue{values: [<any>]}"), (1, "google.protobuf.ListValue{?values: <opt_dyn>}"), (1, "google.protobuf.ListValue{values: [<map_device>]}")),
    "list_string": ((1, "<struct>.map(<k:string>, <string>)"),),
}  # fmt: skip
"""Further ways, by messages of protocol buffers: hardly anybody has a use for them."""

GENERIC: Final[dict[str, tuple[Form, ...]]] = {
    "bool": (
        (2, "<list_$T>.exists(<e:$T>, <bool>)"), (2, "<list_$T>.all(<e:$T>, <bool>)"), (1, "<list_$T>.exists_one(<e:$T>, <bool>)"), (1, "<list_$T>.existsOne(<i:int>, <e:$T>, <bool>)"), (1, "<list_$T>.all(<i:int>, <e:$T>, <bool>)"), (1, "<list_$T>.exists(<i:int>, <e:$T>, <bool>)"),
        (3, "<$T> in <list_$T>"), (1, "<list_$T> == <list_$T>"), (1, "<list_$T>.isSorted()"), (1, "<list_$T>.includes(<$T>)"), (1, "sets.contains(<list_$T>, <list_$T>)"), (1, "sets.intersects(<list_$T>, <list_$T>)"), (1, "sets.equivalent(<list_$T>, <list_$T>)"), (1, "<opt_$T>.hasValue()"), (1, "<opt_$T> == <opt_$T>"),
    ),
    "int": ((1, "<list_$T>.size()"), (1, "size(<list_$T>)"), (1, "<list_$T>.indexOf(<$T>)"), (1, "<list_$T>.lastIndexOf(<$T>)")),
    "$T": ((2, "<list_$T>[<small>]"), (2, "<opt_$T>.orValue(<$T>)"), (1, "<opt_$T>.value()"), (1, "<list_$T>.max()"), (1, "<list_$T>.min()"), (1, "<list_$T>.sum()"), (1, "cel.bind(<x:$T>, <$T>, <$T>)"), (1, "<list_$T>.first().orValue(<$T>)")),
    "opt_$T": ((2, "optional.of(<$T>)"), (1, "optional.none()"), (1, "optional.ofNonZeroValue(<$T>)"), (2, "<opt_$T>.or(<opt_$T>)"), (1, "<list_$T>[?<int>]"), (1, "<opt_$T>.optMap(<x:$T>, <$T>)"), (1, "<opt_$T>.optFlatMap(<x:$T>, <opt_$T>)"), (1, "<list_$T>.first()"), (1, "<list_$T>.last()")),
    "list_$T": (
        (3, "[<$T>, <$T>]"), (2, "[<$T>]"), (2, "[<$T>, <$T>, <$T>,]"), (1, "[?<opt_$T>, <$T>]"), (1, "[?<opt_$T>]"), (1, "<list_$T> + <list_$T>"), (2, "<list_$T>.map(<e:$T>, <$T>)"), (1, "<list_$T>.map(<e:$T>, <bool>, <$T>)"), (2, "<list_$T>.filter(<e:$T>, <bool>)"), (1, "<list_$T>.slice(<small>, <small>)"),
        (1, "<list_$T>.sort()"), (1, "<list_$T>.sortBy(<e:$T>, <any>)"), (1, "<list_$T>.reverse()"), (1, "<list_$T>.distinct()"), (1, "[<list_$T>, <list_$T>].flatten()"), (1, "<list_$T>.flatten(<small>)"), (1, "<list_$T>.transformList(<i:int>, <e:$T>, <$T>)"), (1, "<list_$T>.transformList(<i:int>, <e:$T>, <bool>, <$T>)"), (1, "(<bool> ? <list_$T> : <list_$T>)"), (1, "[<opt_$T>].unwrapOpt()"),
        (1, "optional.unwrap([<opt_$T>, <opt_$T>])"), (1, "lists.range(<small>).map(<i:int>, <$T>)"),
    ),
}  # fmt: skip
"""Forms for each element type."""

GENERIC_LEAVES: Final[dict[str, tuple[Form, ...]]] = {
    "opt_$T": ((1, "optional.none()"), (3, "optional.of(<$T>)")),
    "list_$T": ((1, "[]"), (3, "[<$T>]"), (4, "[<$T>, <$T>]"), (2, "[<$T>, <$T>, <$T>]")),
}
"""Leaves for each element type."""

WORDS: Final[dict[str, tuple[Form, ...]]] = {
    "compare": ((3, "<"), (3, "<="), (3, ">"), (4, ">="), (4, "=="), (2, "!=")),
    "key": ((3, "a"), (1, "key"), (1, "value"), (1, "b"), (1, "nope"), (1, "s1"), (1, "`a`")),
    "field": ((3, "driver"), (3, "attributes"), (2, "allowMultipleAllocations"), (1, "capacity"), (1, "nope")),
    "part": ((1, "getFullYear"), (1, "getMonth"), (1, "getDate"), (1, "getDayOfMonth"), (1, "getDayOfWeek"), (1, "getDayOfYear"), (1, "getHours"), (1, "getMinutes"), (1, "getSeconds"), (1, "getMilliseconds")),
    "packed": ((2, "Int64Value"), (2, "Struct"), (2, "ListValue"), (2, "Value"), (1, "Int32Value"), (1, "UInt64Value"), (1, "BoolValue"), (1, "StringValue"), (1, "BytesValue"), (1, "FloatValue"), (1, "DoubleValue"), (1, "Duration"), (1, "Timestamp"), (1, "Empty"), (1, "Any"), (1, "FieldMask")),
    "zone": ((2, '"UTC"'), (1, '"Europe/Berlin"'), (1, '"+02:00"'), (1, '"-08:30"'), (1, '"America/New_York"'), (1, '"bad"'), (1, '""'), (1, '"05:30"')),
    "small": ((4, "0"), (4, "1"), (3, "2"), (2, "3"), (1, "-1"), (1, "5"), (1, "<int>")),
    "template": ((3, '"%s"'), (2, '"x%dy"'), (1, '"%f"'), (1, '"%.3f"'), (1, '"%e"'), (1, '"%.2e"'), (1, '"%b"'), (1, '"%x"'), (1, '"%X"'), (1, '"%o"'), (1, '"100%%"'), (1, '"%"'), (1, '"%q"'), (1, '"%.s"')),
    "template2": ((2, '"%s-%s"'), (1, '"%d/%s"'), (1, '"%s"'), (1, '"%.1f%%%s"'), (1, '"%s %s %s"')),
}  # fmt: skip
"""Words that are no expressions by themselves."""

ANY: Final[tuple[Form, ...]] = (
    (8, "int"), (8, "string"), (5, "bool"), (4, "dyn"), (3, "double"), (2, "uint"), (3, "semver"), (3, "quantity"), (2, "list_int"), (2, "list_string"), (1, "list_dyn"), (1, "map_string_int"),
    (1, "map_int_string"), (1, "map_attribute"), (1, "null"), (1, "opt_int"), (1, "opt_string"), (1, "opt_dyn"), (1, "duration"), (1, "timestamp"), (1, "bytes"), (1, "type"), (1, "ip"), (1, "cidr"), (1, "url"), (1, "list_bool"), (1, "map_device"), (1, "list_semver"), (1, "format"), (1, "struct"), (1, "message"),
)  # fmt: skip
"""Types that may stand where any may: the gap `<any>`, and where a wrong type is put on purpose."""

WRONG: Final[tuple[Form, ...]] = (
    (2, "nope"), (1, "device.nope"), (1, "device"), (1, "nope(1)"), (1, "<string>.nope()"), (1, "device.name"), (1, "9223372036854775808"), (1, "-9223372036854775809"), (1, "18446744073709551616u"), (1, "1e400"), (1, '"\\q"'), (1, "'a"), (1, "math.least(1, 2)"), (1, '[1, "a"]'),
    (1, '{"a": 1, 2: "b"}'), (1, "{1: 1, 1: 2}"), (1, "{1.5: 1}"), (1, "{[1]: 1}"), (1, "kubernetes.Quantity"), (1, "has(nope)"), (1, "has(device)"), (1, "[1].map(1, 1)"), (1, "cel.bind(device.x, 1, 1)"), (1, 'optional.of(1).orValue("a")'), (1, 'b"\\u00e9"'), (1, "if"), (1, "true.size()"),
    (1, "device.attributes.d"), (1, 'google.protobuf.Int64Value{value: "a"}'), (1, "google.protobuf.Int64Value{nope: <any>}"), (1, "google.protobuf.Nope{}"), (1, "int{}"), (1, "list{values: [<int>]}"), (1, "duration{seconds: <int>}"), (1, "google.protobuf.StringValue{value: <any>}"), (1, "google.protobuf.Int64Value"), (1, "kubernetes.DRADevice{driver: <any>}"), (1, "cel.iterableRange"), (1, "1 in 2"), (1, "<int>.<name>"), (1, "a.b.c"), (1, ".device.driver"), (1, "device.driver()"), (1, "size()"), (1, 'duration("x")'), (1, '"a".matches("[")'), (1, "type(1) == type"), (1, "[1,2,3].exists(x, y, z, true)"),
)  # fmt: skip
"""What is wrong in itself, or looks so."""
