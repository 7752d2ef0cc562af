# Builds, packs and installs the tool.
CC := cc
NAME := tally

.PHONY: all clean install pack notes

all: build/release/tally build/release/tally.1

build/release/tally: src/main.c src/count.c src/count.h
	mkdir -p build/release
	$(CC) -O2 -Wall -Wextra -DVERSION='"1.3.0"' -o build/release/tally src/main.c src/count.c

build/release/tally.1: doc/tally.1.in
	mkdir -p build/release
	sed 's/@VERSION@/1.3.0/' doc/tally.1.in > build/release/tally.1

build/release/test: src/test.c src/count.c src/count.h
	$(CC) -O2 -Wall -Wextra -g -o build/release/test src/test.c src/count.c
	build/release/test

pack: all
	tar -C build/release -czf build/$(NAME)-1.3.0.tar.gz tally tally.1

notes:
	mkdir -p build/release-notes
	cp doc/notes-1.3.0.md build/release-notes/

# Since 1.3.0 the manual is installed, too.
install: all
	install -m 755 build/release/tally $(DESTDIR)/usr/bin/tally
	install -m 644 build/release/tally.1 $(DESTDIR)/usr/share/man/man1/tally.1

clean:
	rm -rf build/release build/release-notes
