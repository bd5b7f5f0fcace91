-- Reserved.
SELECT glyphoxa_isolate();
